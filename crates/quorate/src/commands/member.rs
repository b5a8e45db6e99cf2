//! `quorate member`: who belongs to the cluster, while it runs.

use quorate_api::{InviteRequest, InviteView, MemberRow, MembersView, RemoveRequest, format_span};

use super::cluster::{self, Cluster, Json, table};
use crate::Outcome;

/// List the members of the cluster, and change who they are.
///
/// Changes need a charter (`[charter]` in the configuration): they are replicated, and a majority
/// of those who vote must answer. If the cluster tells callers apart, they take `admin` on all
/// pools.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// List the members.
    #[command(after_help = "\
Examples:
  quorate member list
  quorate member list --json")]
    List {
        #[command(flatten)]
        cluster: Cluster,
        #[command(flatten)]
        json: Json,
    },
    /// Have a member give away what it decides, before it is stopped or worked on.
    ///
    /// Others take over without a pause, and nobody loses a grant. It stays a member, serves its
    /// clients and votes on, and decides nothing until `--undo`, also after a restart.
    #[command(after_help = "\
Examples:
  quorate member drain n2
  quorate member drain n2 --undo")]
    Drain {
        /// The member.
        name: String,
        /// Let it decide again: it is given its share back, slowly.
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        cluster: Cluster,
        #[command(flatten)]
        json: Json,
    },
    /// Remove a member: it gives away what it decides, loses its vote, and is cut off.
    ///
    /// Others close their connections to it and let it in no more, whatever it shows. Its clients
    /// go on at other members within their lease. Refused if that costs more than the member: a
    /// charter without a vote to spare, or pools of other protocols that need it; `--force` does it
    /// all the same. A machine may join under its name only after `quorate member readmit`.
    #[command(after_help = "\
Examples:
  quorate member remove n2
  quorate member remove n2 --dead      its machine is gone")]
    Remove {
        /// The member.
        name: String,
        /// It is gone for good and does not answer: what it decided waits as after a crash.
        #[arg(long)]
        dead: bool,
        /// Remove it although that costs what the refusal says.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        cluster: Cluster,
        #[command(flatten)]
        json: Json,
    },
    /// Replace a member whose machine or disk is lost: the old one is removed, and a machine may
    /// join under its name.
    ///
    /// What `remove --dead` and `readmit` do, in one step that can be said again. Then start the
    /// new machine with the member's file and certificate, and an empty data directory. It is
    /// another member: what was lost does not come back.
    #[command(after_help = "\
Examples:
  quorate member replace n2")]
    Replace {
        /// The member.
        name: String,
        /// Replace it although that costs what the refusal says.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        cluster: Cluster,
        #[command(flatten)]
        json: Json,
    },
    /// Invite machines: prints for each the command that makes it a member.
    ///
    /// Only in a cluster that was made by `quorate serve --new`. An invitation is good once, for
    /// one name that nobody had, until it expires; inviting again under a name makes the one
    /// before worthless. It has the fingerprint of the cluster's authority, so that the machine
    /// joins this cluster and no other, and a secret: who has it can join.
    #[command(after_help = "\
Examples:
  quorate member invite n2
  quorate member invite n2 n3 --expires 10m")]
    Invite {
        /// What they are to be called.
        #[arg(required = true)]
        names: Vec<String>,
        /// For how long they may join.
        #[arg(long, value_name = "SPAN", default_value = "1h", value_parser = cluster::duration)]
        expires: std::time::Duration,
        #[command(flatten)]
        cluster: Cluster,
        #[command(flatten)]
        json: Json,
    },
    /// Let a machine join under the name of a member that was removed.
    ///
    /// It starts with an empty data directory, and is another member than the one before: what was
    /// lost does not come back.
    #[command(after_help = "\
Examples:
  quorate member readmit n2")]
    Readmit {
        /// The name.
        name: String,
        #[command(flatten)]
        cluster: Cluster,
        #[command(flatten)]
        json: Json,
    },
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let (members, json, said) = match args.verb {
            Verb::List { cluster, json } => {
                (cluster.views()?.members().await?, json, String::new())
            }
            Verb::Drain { name, undo, cluster, json } => {
                let members = cluster.views()?.drain_member(&name, undo).await?;
                let said = match undo {
                    false => format!("{name} decides nothing any more\n"),
                    true => format!("{name} may decide again\n"),
                };
                (members, json, said)
            }
            Verb::Remove { name, dead, force, cluster, json } => {
                let how = RemoveRequest { dead, force };
                let members = cluster.views()?.remove_member(&name, how).await?;
                (members, json, format!("{name} is no member any more\n"))
            }
            Verb::Replace { name, force, cluster, json } => {
                let views = cluster.views()?;
                // Said again, each of them does nothing that is done.
                views.remove_member(&name, RemoveRequest { dead: true, force }).await?;
                let members = views.readmit_member(&name).await?;
                let said = format!(
                    "{name} is no member any more, and a machine may join as {name}: start it \
                     with an empty data directory\n"
                );
                (members, json, said)
            }
            Verb::Invite { names, expires, cluster, json } => {
                return invite(&names, expires, &cluster, json).await;
            }
            Verb::Readmit { name, cluster, json } => {
                let members = cluster.views()?.readmit_member(&name).await?;
                let said = format!("{name} may join: start it with an empty data directory\n");
                (members, json, said)
            }
        };
        cluster::print(json.json, &members, || said + &text(&members))?;
        Ok(Outcome::Good)
    })
}

async fn invite(
    names: &[String],
    expires: std::time::Duration,
    cluster: &Cluster,
    json: Json,
) -> anyhow::Result<Outcome> {
    let views = cluster.views()?;
    let how = InviteRequest { expires_s: expires.as_secs() };
    let mut made = Vec::new();
    for name in names {
        match views.invite_member(name, how).await {
            Ok(invited) => made.push(invited),
            Err(error) => {
                // Those that were made are good: nobody else has seen them.
                cluster::print(json.json, &made, || lines(&made))?;
                return Err(error.into());
            }
        }
    }
    cluster::print(json.json, &made, || lines(&made))?;
    if !json.json {
        let span = format_span(expires);
        eprintln!("run each on its machine within {span}: it is good once, and secret until then");
    }
    Ok(Outcome::Good)
}

fn lines(made: &[InviteView]) -> String {
    made.iter().map(|it| format!("quorate serve --join '{}'\n", it.invitation)).collect()
}

fn text(view: &MembersView) -> String {
    let by_invitation = view.members.iter().any(|member| member.joined.is_some());
    let row = |member: &MemberRow| {
        let state = match member {
            MemberRow { leaving: true, .. } => "is being removed",
            MemberRow { draining: true, .. } => "drains",
            _ => "",
        };
        let mut row = vec![
            member.name.clone(),
            member.id.map_or_else(|| "-".into(), |id| format!("m{id}")),
            member.address.clone(),
            member.role.word().to_owned(),
            member.groups.to_string(),
            if member.connected { "yes" } else { "no" }.to_owned(),
        ];
        row.extend(by_invitation.then(|| member.joined.clone().unwrap_or_else(|| "-".into())));
        row.push(state.to_owned());
        row
    };
    let rows: Vec<Vec<String>> = view.members.iter().map(row).collect();
    let mut header = vec!["member", "id", "address", "charter", "groups", "connected", ""];
    if by_invitation {
        header.insert(6, "joined");
    }
    let mut text = table(&header, &rows);
    match (view.version, &view.leader) {
        (Some(version), Some(leader)) => {
            text.push_str(&format!("charter version {version}, led by {leader}\n"));
        }
        (Some(version), None) => {
            text.push_str(&format!("charter version {version}, led by nobody now\n"));
        }
        (None, _) if view.problem.is_none() => {
            text.push_str("no charter: members are those of the configuration file\n");
        }
        (None, _) => {}
    }
    if let Some(problem) = &view.problem {
        text.push_str(&format!("charter: {problem}\n"));
    }
    text
}
