//! `quorate completions`: what a shell must know to complete our commands.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{Cli, Outcome};

/// Print what a shell needs to complete the commands and options of quorate.
///
/// Packages of quorate install it already. Names of pools and claims are not completed.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples, each for the person who runs it:
  quorate completions bash > ~/.local/share/bash-completion/completions/quorate
  quorate completions zsh > ~/.zfunc/_quorate       # a folder of $fpath, before compinit
  quorate completions fish > ~/.config/fish/completions/quorate.fish")]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut offered(), "quorate", &mut script);
    quorate_cli::unless_unread(std::io::stdout().write_all(&script))?;
    Ok(Outcome::Good)
}

/// The tree of commands without those that are nobody's to type: completions would offer even what
/// help does not show.
pub(super) fn offered() -> clap::Command {
    let whole = Cli::command();
    let shown: Vec<clap::Command> =
        whole.get_subcommands().filter(|it| !it.is_hide_set()).cloned().collect();
    let mut tree = clap::Command::new("quorate").version(env!("CARGO_PKG_VERSION"));
    if let Some(about) = whole.get_about() {
        tree = tree.about(about.clone());
    }
    tree.subcommands(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_the_commands_and_none_that_is_hidden() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut offered(), "quorate", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["run", "acquire", "completions", "timeout", "server"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            assert!(!script.contains("__exec") && !script.contains("__man"), "{shell}");
        }
    }
}
