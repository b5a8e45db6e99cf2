//! `quorate-lab ring`: looking into the self-stabilizing ring.

mod replay;
mod vector;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use quorate_core::{Moment, NODES_MAX, NodeId, Outbox, Protocol, Seat, Start, UNITS_MAX};
use quorate_protocols::ring::{Pool, Ring};
use serde_json::json;

use super::cluster::{self, Cluster, Json};
use crate::Outcome;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Boot every seat of a pool in this process, and print how many bytes each takes.
    Size {
        /// Nodes
        #[arg(long, default_value_t = 1_000_000)]
        nodes: u32,
        /// Units
        #[arg(long, default_value_t = 64)]
        units: u32,
        /// Print one JSON document instead.
        #[arg(long)]
        json: bool,
    },
    /// Scramble the state of a pool's seat at the node that answers, to see the pool heal.
    ///
    /// Only for tests, and only where the pool says `allow_corruption = true`: until it has healed,
    /// more units may be in use than there are. If the cluster asks for the administrator's token,
    /// give it in $QUORATE_TOKEN.
    Corrupt {
        /// The pool.
        pool: String,
        #[command(flatten)]
        cluster: Cluster,
        #[command(flatten)]
        json: Json,
    },
    /// Replay recorded runs of a ring, one JSON object per line, and compare every step.
    ///
    /// Prints `ok NAME` or `DIFFERENT NAME: ` and the first difference. Exit code 1 if there is
    /// any, 2 if the file cannot be read.
    Replay {
        /// The recorded runs (format: docs/protocols/ring.md).
        file: PathBuf,
        /// Print one JSON document instead.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.verb {
        Verb::Corrupt { pool, cluster, json } => cluster::block_on(async {
            let view = cluster.views()?.corrupt(pool).await?;
            cluster::print(json.json, &view, || {
                format!(
                    "pool {pool}: a seat is scrambled; `quorate status {pool}` shows how it heals"
                )
            })?;
            Ok(Outcome::Good)
        }),
        &Verb::Size { nodes, units, json } => size(nodes, units, json),
        Verb::Replay { file, json } => {
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let vectors = vector::parse(&text).with_context(|| file.display().to_string())?;
            ensure!(!vectors.is_empty(), "{}: no recorded run in it", file.display());
            replay_all(&vectors, *json)
        }
    }
}

/// Every seat at rest, as it is while nobody at its node claims anything.
fn size(nodes: u32, units: u32, json: bool) -> anyhow::Result<Outcome> {
    ensure!((1..=NODES_MAX).contains(&nodes), "--nodes {nodes}: choose 1 to {NODES_MAX}");
    ensure!((1..=UNITS_MAX).contains(&units), "--units {units}: choose 1 to {UNITS_MAX}");
    let pool = Pool::new(units, nodes);
    let mut out = Outbox::new();
    let seats: Vec<Ring> = (0..nodes)
        .map(|node| {
            let seat = Seat { me: NodeId(node), boot: 0, now: Moment::ZERO, pool: &pool };
            let ring = Ring::boot(&seat, Start::First, &mut out);
            out.drain();
            ring
        })
        .collect();
    let most = seats.iter().skip(1).map(Ring::bytes).max().unwrap_or(0);
    let total: usize = seats.iter().map(Ring::bytes).sum();
    let root = seats[0].bytes();
    let mut stdout = std::io::stdout().lock();
    if json {
        let document = json!({
            "nodes": nodes, "units": units, "root": root, "other": most, "total": total,
        });
        writeln!(stdout, "{document:#}")?;
    } else {
        writeln!(stdout, "{nodes} seats share {units} units: {total} bytes")?;
        writeln!(stdout, "root {root} bytes, every other seat {most} bytes")?;
    }
    Ok(Outcome::Good)
}

fn replay_all(vectors: &[vector::Vector], json: bool) -> anyhow::Result<Outcome> {
    let mut out = std::io::stdout().lock();
    let mut results = Vec::new();
    let mut different = 0;
    for vector in vectors {
        let difference = vector.replay().err();
        different += usize::from(difference.is_some());
        match &difference {
            _ if json => {}
            None => writeln!(out, "ok {}", vector.name())?,
            Some(difference) => writeln!(out, "DIFFERENT {}: {difference}", vector.name())?,
        }
        results.push(json!({
            "name": vector.name(),
            "ok": difference.is_none(),
            "difference": difference,
        }));
    }
    if json {
        let document = json!({ "vectors": results, "different": different });
        writeln!(out, "{document:#}")?;
    }
    Ok(if different == 0 { Outcome::Good } else { Outcome::Broken })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../quorate-protocols/testdata/ring.jsonl");
        fs::read_to_string(path).expect("the vectors are part of the repository")
    }

    /// Recorded by an implementation of the specification that shares nothing with this one.
    #[test]
    fn runs_from_any_state_replay_exactly() {
        let text = include_str!("../../../../quorate-protocols/testdata/ring-any-start.jsonl");
        let vectors = vector::parse(text).expect("the vectors can be read");
        assert_eq!(vectors.len(), 16);
        for vector in &vectors {
            assert_eq!(vector.replay(), Ok(()), "{}", vector.name());
        }
    }

    #[test]
    fn every_recorded_run_replays_exactly() {
        let vectors = vector::parse(&recorded()).expect("the vectors can be read");
        assert_eq!(vectors.len(), 24);
        for vector in &vectors {
            assert_eq!(vector.replay(), Ok(()), "{}", vector.name());
        }
    }

    /// A replay that compared nothing would pass the test above.
    #[test]
    fn a_changed_number_anywhere_is_a_difference() {
        for (line, text) in recorded().lines().enumerate() {
            for (from, to) in [("\"seq\":", "\"seq\":1"), ("\"th\":", "\"th\":1")] {
                let (head, end) = text.split_once("\"final\"").expect("every run has an end");
                let changed = format!("{head}\"final\"{}", end.replacen(from, to, 1));
                let vectors = vector::parse(&changed).expect("it can still be read");
                assert!(vectors[0].replay().is_err(), "line {}: {from}", line + 1);
            }
            let changed = text.replacen("\"check\":[[", "\"check\":[[1", 1);
            let vectors = vector::parse(&changed).expect("it can still be read");
            let difference = vectors[0].replay().expect_err("another number of tokens");
            assert!(difference.contains("after event 1"), "{difference}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said_in_one_line_with_its_place() {
        let good = recorded().lines().next().expect("there are vectors").to_string();
        let bad = [
            ("{", "line 1"),
            ("[]", "line 1"),
            (&good.replace("repaired", "printed"), "printed"),
            (&good.replace("\"proto\":\"core\"", "\"proto\":\"tram\""), "tram"),
            (&good.replace("\"l\":2", "\"l\":0"), "1 <= K <= l"),
            (&good.replace("[\"round\",3]", "[\"jump\",3]"), "jump"),
            (&good.replace("[\"round\",3]", "[\"deliver\",3]"), "no station 3"),
            (&good.replacen("[\"Token\",1]", "[\"Token\"]", 1), "Token"),
            (&good.replace("\"n\":3", "\"n\":4"), "4"),
        ];
        for (text, word) in bad {
            let error = format!("{:#}", vector::parse(text).err().expect(text));
            assert!(error.contains(word), "{error}");
            assert!(error.starts_with("line 1"), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(vector::parse("\n\n").expect("nothing to replay").is_empty());
    }
}
