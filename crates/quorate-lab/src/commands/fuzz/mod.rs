//! `quorate-lab fuzz`: nonsense for everything that reads what others wrote.

mod decoders;
mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use quorate_core::Dice;
use serde::Serialize;

use crate::Outcome;
use crate::commands::cluster::{self, Json};
use decoders::{ALL, Decoder};
use mutate::Corpus;

/// Feed nonsense to every decoder: frames, messages, records, bodies, tokens, certificates, files.
///
/// Inputs are changed examples, and changed inputs that were taken; the same seed and number gives
/// the same inputs. A decoder takes an input or refuses it; what it takes must be the same after it
/// was written and read again. The first that panics ends it, and is printed.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab fuzz --inputs 1000000
  quorate-lab fuzz --minutes 10 --seed 7
  quorate-lab fuzz --decoder frames --input 5175010104000000ff

Exit codes: 0 nothing was found; 1 a decoder fell over an input; 2 the input was wrong.")]
pub(crate) struct Args {
    /// How many inputs, over all decoders.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    inputs: u64,
    /// Go on for this long instead.
    #[arg(long, value_name = "N", conflicts_with = "inputs")]
    minutes: Option<u64>,
    /// Which inputs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only this one; its name, as the table shows it.
    #[arg(long, value_name = "NAME")]
    decoder: Option<String>,
    /// One input, as hexadecimal digits, instead of made ones.
    #[arg(long, value_name = "HEX", requires = "decoder")]
    input: Option<String>,
    #[command(flatten)]
    json: Json,
}

/// What a decoder was fed.
#[derive(Serialize, Debug)]
struct Row {
    decoder: &'static str,
    inputs: u64,
    taken: u64,
    per_second: f64,
    slowest_us: f64,
}

/// So many inputs are made before somebody looks at the clock, for each of a decoder's weight.
const ROUND: u64 = 2_000;

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let chosen: Vec<&Decoder> = match &args.decoder {
        Some(name) => ALL.iter().filter(|it| it.name == name).collect(),
        None => ALL.iter().collect(),
    };
    if chosen.is_empty() {
        let names: Vec<&str> = ALL.iter().map(|it| it.name).collect();
        bail!("there is no such decoder; there are {}", names.join(", "));
    }
    if let Some(hex) = &args.input {
        let input = bytes(hex).context("--input takes pairs of hexadecimal digits")?;
        let taken = (chosen[0].read)(&input);
        crate::print(if taken { "taken" } else { "refused" })?;
        return Ok(Outcome::Good);
    }
    let mut feeds: Vec<Feed> = chosen.iter().map(|it| Feed::new(it, args.seed)).collect();
    let weights: u64 = chosen.iter().map(|it| it.weight).sum();
    let until = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let mut left = args.inputs;
    loop {
        let over = until.map_or(left == 0, |until| Instant::now() >= until);
        if over {
            break;
        }
        for feed in &mut feeds {
            let share = match until {
                Some(_) => ROUND * feed.decoder.weight,
                None => (ROUND * feed.decoder.weight).min(left),
            };
            if let Err(input) = feed.round(share) {
                let (name, hex) = (feed.decoder.name, hex(&input));
                eprintln!(
                    "{name} fell over input {} of seed {}, {} bytes\nagain: quorate-lab fuzz \
                     --decoder {name:?} --input {hex}",
                    feed.row.inputs,
                    args.seed,
                    input.len()
                );
                return Ok(Outcome::Broken);
            }
            left = left.saturating_sub(if until.is_none() { share } else { 0 });
        }
        let done: u64 = feeds.iter().map(|feed| feed.row.inputs).sum();
        // Often enough for whoever waits, and seldom enough for a log.
        if (done / (ROUND * weights)).is_multiple_of(50) {
            eprintln!("{done} inputs");
        }
    }
    let rows: Vec<Row> = feeds.into_iter().map(Feed::result).collect();
    cluster::print(args.json.json, &rows, || table(&rows))?;
    Ok(Outcome::Good)
}

/// A decoder, and what it is fed with.
struct Feed<'a> {
    decoder: &'a Decoder,
    corpus: Corpus,
    dice: Dice,
    row: Row,
    slowest: Duration,
    spent: Duration,
    input: Vec<u8>,
}

impl<'a> Feed<'a> {
    fn new(decoder: &'a Decoder, seed: u64) -> Feed<'a> {
        // Each has inputs of its own, whichever others run.
        let mut dice = Dice::new(seed);
        for byte in decoder.name.bytes() {
            dice = Dice::new(dice.draw() ^ u64::from(byte));
        }
        let row =
            Row { decoder: decoder.name, inputs: 0, taken: 0, per_second: 0.0, slowest_us: 0.0 };
        let (slowest, spent) = (Duration::ZERO, Duration::ZERO);
        let corpus = Corpus::new((decoder.examples)());
        Feed { decoder, corpus, dice, row, slowest, spent, input: Vec::new() }
    }

    /// So many more; or the one over which it fell.
    fn round(&mut self, inputs: u64) -> Result<(), Vec<u8>> {
        let began = Instant::now();
        let mut last = began;
        for _ in 0..inputs {
            self.row.inputs += 1;
            self.corpus.make(&mut self.input, &mut self.dice);
            (self.decoder.dress)(&mut self.input, &mut self.dice);
            // Nothing is shared with what fell over.
            let read = catch_unwind(AssertUnwindSafe(|| (self.decoder.read)(&self.input)));
            let Ok(taken) = read else { return Err(std::mem::take(&mut self.input)) };
            if taken {
                self.row.taken += 1;
                self.corpus.keep(&self.input, &mut self.dice);
            }
            let now = Instant::now();
            self.slowest = self.slowest.max(now - last);
            last = now;
        }
        self.spent += began.elapsed();
        Ok(())
    }

    fn result(self) -> Row {
        let per_second = self.row.inputs as f64 / self.spent.as_secs_f64().max(1e-9);
        Row { per_second, slowest_us: self.slowest.as_secs_f64() * 1e6, ..self.row }
    }
}

fn table(rows: &[Row]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.decoder.to_owned(),
                row.inputs.to_string(),
                row.taken.to_string(),
                format!("{:.0}", row.per_second),
                format!("{:.0}", row.slowest_us),
            ]
        })
        .collect();
    let total: u64 = rows.iter().map(|row| row.inputs).sum();
    let header = ["decoder", "inputs", "taken", "inputs/s", "slowest us"];
    format!("{}{total} inputs, and none fell over any\n", cluster::table(&header, &cells))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    (0..hex.len()).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Falls over a list that is shorter than it says.
    const PLANTED: Decoder = Decoder {
        name: "planted",
        weight: 1,
        examples: || vec![vec![3, 1, 2, 3], vec![1, 9], vec![0]],
        dress: |_, _| {},
        read: |bytes| {
            let Some((&length, rest)) = bytes.split_first() else { return false };
            rest[..usize::from(length)].iter().all(|byte| *byte < 100)
        },
    };

    #[test]
    fn a_decoder_that_trusts_a_length_is_found_out() {
        let found = Feed::new(&PLANTED, 1).round(10_000).expect_err("it falls over");
        assert!(usize::from(found[0]) > found.len() - 1, "{found:?}");
    }

    #[test]
    fn a_seed_means_the_same_inputs_and_all_decoders_take_some() {
        for decoder in ALL {
            let fed = |seed| {
                let mut feed = Feed::new(decoder, seed);
                feed.round(400).expect("it falls over nothing");
                (feed.row.taken, feed.input)
            };
            let (taken, last) = fed(5);
            assert!(taken > 0, "{} takes nothing: its examples are wrong", decoder.name);
            assert_eq!((taken, last), fed(5), "{}", decoder.name);
        }
    }

    #[test]
    fn bytes_are_written_and_read() {
        assert_eq!(bytes(&hex(&[0, 0x7f, 0xff])), Some(vec![0, 0x7f, 0xff]));
        assert_eq!((bytes("0"), bytes("zz"), bytes("é0")), (None, None, None));
    }
}
