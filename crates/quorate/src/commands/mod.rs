//! One file per verb: its arguments, and what it does with them.

mod acquire;
mod apply;
mod cert;
mod completions;
mod daemon;
mod dev;
mod disaster;
mod doctor;
mod drain;
mod fence;
mod history;
mod holders;
mod init;
mod jobserver;
mod keep;
mod man;
mod member;
mod pool;
mod pools;
mod queue;
mod relabel;
mod release;
mod renew;
mod revoke;
mod right;
pub(crate) mod run;
mod serve;
mod service;
mod signals;
mod status;
mod token;
mod top;
mod waiting;
mod wanted;
mod why;

use quorate_cli::cluster;

use crate::Outcome;

/// What quorate can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    Dev(dev::Args),
    Init(init::Args),
    Serve(serve::Args),
    Run(run::Args),
    Jobserver(jobserver::Args),
    Acquire(acquire::Args),
    Release(release::Args),
    Renew(renew::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Pools(pools::Args),
    Pool(pool::Args),
    Apply(apply::Args),
    Holders(holders::Args),
    Queue(queue::Args),
    Top(top::Args),
    Why(why::Args),
    History(history::Args),
    Revoke(revoke::Args),
    Drain(drain::Args),
    Fence(fence::Args),
    Relabel(relabel::Args),
    Member(member::Args),
    Cluster(disaster::Args),
    Cert(cert::Args),
    Token(token::Args),
    Right(right::Args),
    Completions(completions::Args),
    #[command(name = "__man", hide = true)]
    Man(man::Args),
    #[command(name = "__exec", hide = true)]
    Exec(run::ExecArgs),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Dev(args) => dev::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Run(args) => run::run(args),
        Command::Jobserver(args) => jobserver::run(args),
        Command::Acquire(args) => acquire::run(args),
        Command::Release(args) => release::run(args),
        Command::Renew(args) => renew::run(args),
        Command::Status(args) => status::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Pools(args) => pools::run(args),
        Command::Pool(args) => pool::run(args),
        Command::Apply(args) => apply::run(&args),
        Command::Holders(args) => holders::run(args),
        Command::Queue(args) => queue::run(args),
        Command::Top(args) => top::run(args),
        Command::Why(args) => why::run(args),
        Command::History(args) => history::run(args),
        Command::Revoke(args) => revoke::run(args),
        Command::Drain(args) => drain::run(args),
        Command::Fence(args) => fence::run(args),
        Command::Relabel(args) => relabel::run(args),
        Command::Member(args) => member::run(args),
        Command::Cluster(args) => disaster::run(&args),
        Command::Cert(args) => cert::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Right(args) => right::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Exec(args) => run::exec(args),
    }
}
