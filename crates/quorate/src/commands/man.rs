//! `quorate __man DIRECTORY`: a man page for every command, for packages (`cargo xtask dist`).
//! They say what `--help` says.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::completions::offered;
use crate::Outcome;

/// Write a man page for every command into a directory. For packages.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Where to; made if it is not there.
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let shown = args.folder.display();
    std::fs::create_dir_all(&args.folder).with_context(|| format!("cannot make {shown}"))?;
    for (name, page) in pages()? {
        let file = args.folder.join(name);
        std::fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(Outcome::Good)
}

/// The pages under their file names.
fn pages() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut root = offered();
    root.build();
    let mut found = Vec::new();
    let mut left = vec![(root, "quorate".to_owned())];
    while let Some((command, name)) = left.pop() {
        // `help` says what the pages say.
        for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
            left.push((child.clone(), format!("{name}-{}", child.get_name())));
        }
        found.push((format!("{name}.1"), page(command, &name)?));
    }
    Ok(found)
}

fn page(command: clap::Command, name: &str) -> std::io::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let nested = command.get_subcommands().next().is_some();
    let command = command.display_name(name.to_owned());
    let version = concat!("quorate ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command);
    let mut page = Vec::new();
    // clap_mangen leaves out the quotes of a missing date, and the version would be taken for it.
    writeln!(page, ".TH {} 1 \"\" \"{version}\" Quorate", name.to_uppercase())?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if nested {
        man.render_subcommands_section(&mut page)?;
    }
    if !after.is_empty() {
        // Examples and tables of exit codes: as they were written, line by line.
        let mut roff = Roff::new();
        roff.control("SH", ["NOTES"]).control("nf", []);
        for line in after.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
        roff.to_writer(&mut page)?;
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    let other = if name == "quorate" { "quorate-run(1), quorate-serve(1)" } else { "quorate(1)" };
    roff.text([roman(other)]);
    roff.to_writer(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_name_options_and_examples() {
        let pages = pages().unwrap();
        let page = |name: &str| {
            let found = pages.iter().find(|(have, _)| have == name);
            String::from_utf8(found.expect(name).1.clone()).unwrap()
        };
        assert!(page("quorate.1").contains("quorate\\-run(1)"));
        let run = page("quorate-run.1");
        let title = format!(".TH QUORATE-RUN 1 \"\" \"quorate {}\"", env!("CARGO_PKG_VERSION"));
        for word in [&title, "quorate\\-run \\- Claim units", "\\-\\-timeout", "make release"] {
            assert!(run.contains(word), "{word} in {run}");
        }
        assert!(page("quorate-cert-new-ca.1").contains(".SH SYNOPSIS"));
        assert!(pages.len() > 20 && pages.iter().all(|(name, _)| !name.contains("__")));
    }
}
