//! `quorate-lab play`: a page on which a pool runs, and whoever looks at it interferes.
//!
//! A run is its words: options, a seed, and what was done after which step. The server keeps
//! nothing; it plays the words from the beginning whenever it is asked, and `--show` plays the same
//! words in the terminal. What is printed and wrong in the papers can be played as challenges.

mod challenges;
mod serve;
mod words;

use std::io::{BufWriter, Write as _};

use serde_json::Value;

use crate::{Outcome, unless_unread};

pub(crate) use words::{Words, play_with};

/// Play with a simulated pool in the browser: crash, cut, drop, step, rewind, branch.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab play --open
  quorate-lab play --port 8080 --at '--protocol ring --nodes 6 --units 3'
  quorate-lab play --show '--protocol central --steps 60 --intervene 12:crash:2,30:restart:2'
  quorate-lab play --show '--challenge tie-break --intervene 0:claim:0,1:claim:1,2:claim:2'
  quorate-lab play --show --help

The page listens on loopback only, and keeps nothing: a state is its words, which are the link and
the command that the page shows. The same words give the same run, byte for byte.

Exit codes: 0; with --show, 1 if a law was broken; 2 if the words make no sense, or the port is
taken.")]
pub(crate) struct Args {
    /// The port on 127.0.0.1; 0 takes one that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Begin with this run instead of the usual one
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    at: Option<String>,
    /// Print this run, a line for every event, instead of serving a page; --help lists the words
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, conflicts_with = "at")]
    show: Option<String>,
}

/// What became of a run.
#[derive(Debug)]
pub(crate) struct Played {
    /// As the page reads it.
    pub(crate) film: Value,
    /// Whether a law was broken.
    pub(crate) broken: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if let Some(words) = &args.show {
        return show(words);
    }
    let at = args.at.as_deref().unwrap_or("");
    Words::parse(at)?;
    serve::run(args.port, args.open, at)?;
    Ok(Outcome::Good)
}

/// Plays the words in the terminal.
fn show(words: &str) -> anyhow::Result<Outcome> {
    if words.split_whitespace().any(|word| matches!(word, "--help" | "-h")) {
        unless_unread(crate::print(Words::help()))?;
        return Ok(Outcome::Good);
    }
    let words = Words::parse(words)?;
    let mut trace = String::new();
    let played = words.play(Some(&mut trace))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    unless_unread(out.write_all(trace.as_bytes()).and_then(|()| out.flush()))?;
    eprintln!("{}", played.film["verdict"].as_str().unwrap_or_default());
    Ok(if played.broken { Outcome::Broken } else { Outcome::Good })
}

/// Where a trace goes.
pub(crate) type Trace<'a> = Option<&'a mut String>;

#[cfg(test)]
mod tests {
    use quorate_papers::Misprint;

    use super::*;

    fn played(words: &str) -> (String, Played) {
        let mut trace = String::new();
        let played = Words::parse(words).unwrap().play(Some(&mut trace)).unwrap();
        (trace, played)
    }

    /// What is done later changes nothing of what was before; the same words give the same run, and
    /// each deed is seen in it.
    #[test]
    fn a_run_is_its_words() {
        for protocol in ["central", "arbiter", "ticket", "table", "broadcast", "ring"] {
            let words = format!("--protocol {protocol} --steps 300");
            let acts = "40:crash:2,60:cut:0-1,90:pause:3,130:resume:3,140:heal:0-1,150:restart:2";
            let hurt = format!("{words} --intervene {acts}");
            let (calm, played_calm) = played(&words);
            let (trace, was) = played(&hurt);
            assert_eq!(trace, played(&hurt).0, "{hurt}");
            let lines = |trace: &str, film: &Value| -> Vec<String> {
                let frames = film["frames"].as_array().unwrap();
                let before = frames.iter().filter(|frame| frame[4].as_u64().unwrap() <= 40);
                trace.lines().skip(5).take(before.count()).map(str::to_owned).collect()
            };
            assert_eq!(lines(&calm, &played_calm.film), lines(&trace, &was.film), "{hurt}");
            assert!(!was.broken, "{hurt}: {}", was.film["verdict"]);
            for deed in ["CRASH", "cut: n0 and n1", "pause", "resume", "healed", "RESTART"] {
                assert!(trace.contains(deed), "{hurt}: {deed}\n{trace}");
            }
        }
    }

    #[test]
    fn a_dropped_message_never_arrives_and_one_that_is_not_there_is_said() {
        let (_, quiet) = played("--steps 60");
        let flight = |film: &Value, index: usize| film["flights"][index].clone();
        let first = flight(&quiet.film, 0);
        let (number, text) = (first[7].as_u64().unwrap(), first[6].as_str().unwrap().to_owned());
        let sent = first[2].as_u64().unwrap();
        let frames = quiet.film["frames"].as_array().unwrap();
        let at = frames.iter().find(|frame| frame[0].as_u64() == Some(sent)).unwrap();
        let step = at[4].as_u64().unwrap();
        let words = format!("--steps 60 --intervene {step}:drop:{number}");
        let (trace, dropped) = played(&words);
        assert!(trace.contains("lost: "), "{trace}");
        assert_eq!(flight(&dropped.film, 0)[4], true, "{text}");
        let (trace, _) = played(&format!("--steps 60 --intervene {step}:drop:999999"));
        assert!(trace.contains("drop:999999: no such message is on its way"), "{trace}");
    }

    #[test]
    fn a_corrupted_ring_heals_and_others_say_that_they_do_not() {
        let (trace, ring) =
            played("--protocol ring --nodes 4 --steps 4000 --intervene 100:corrupt");
        assert!(trace.contains("CORRUPTED") && trace.contains("* legitimate"), "{trace}");
        assert!(!ring.broken, "{}", ring.film["verdict"]);
        let (trace, _) = played("--steps 30 --intervene 10:corrupt");
        assert!(trace.contains("this protocol does not heal from any state"), "{trace}");
    }

    #[test]
    fn at_rest_everybody_was_served() {
        let (_, rest) = played("--steps 20000 --intervene 100:crash:1,200:rest");
        assert_eq!(rest.film["verdict"], "Every law held, and everybody was served");
    }

    /// Each challenge can be won in as many steps as it says, and not in fewer by those who ask as
    /// often.
    #[test]
    fn every_challenge_can_be_won_and_no_sooner_than_said() {
        for challenge in challenges::ALL {
            let (trace, won) = played(&challenge.won());
            assert!(won.broken && trace.contains("BROKEN capacity"), "{}: {trace}", challenge.name);
            assert_eq!(challenge.solution.split(',').count(), challenge.par, "{}", challenge.name);
            let Some(misprint) = challenge.misprint else { continue };
            let requests = if misprint == Misprint::Unmatched { [2, 1, 1] } else { [1, 1, 1] };
            assert_eq!(misprint.shortest(requests), Some(challenge.par), "{}", challenge.name);
        }
    }

    #[test]
    fn words_that_make_no_sense_are_refused() {
        for (words, says) in [
            ("--nodes 900", "--nodes 900"),
            ("--units 0", "units"),
            ("--want 3 --units 2", "3"),
            ("--protocol nothing", "nothing"),
            ("--graph /etc/passwd", "files"),
            ("--family file:/etc/passwd --protocol arbiter", "files"),
            ("--intervene 5:explode:1", "explode"),
            ("--steps 100000000", "--steps"),
            ("--challenge nothing", "tie-break"),
            ("--think 0ms --hold 0ms", "--think"),
            ("--protocol central --variant core", "core"),
        ] {
            let refused = Words::parse(words).and_then(|words| words.play(None)).unwrap_err();
            assert!(format!("{refused:#}").contains(says), "{words}: {refused:#}");
        }
    }
}
