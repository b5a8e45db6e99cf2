//! Transcripts of the toy protocol, which show the commands at work.

mod toy;

use std::path::Path;
use std::time::Duration;

use quorate_core::Lease;
use quorate_sim::{Setting, check_transcripts, replay};
use toy::{Mistake, Pool, Toy};

fn pool(setting: &Setting) -> Pool {
    let mistake = match setting.pool.get("mistake").map(String::as_str) {
        None => None,
        Some("tell-before-persist") => Some(Mistake::TellBeforePersist),
        Some(other) => panic!("no mistake '{other}'"),
    };
    Pool {
        units: setting.number("units", 1),
        lease: Lease::new(setting.duration("lease", Duration::from_secs(10)), 0),
        retry: setting.duration("retry", Duration::from_secs(1)),
        durable: setting.flag("durable"),
        mistake,
    }
}

#[test]
fn transcripts_say_what_happens() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata");
    check_transcripts::<Toy>(&folder, pool);
}

#[test]
fn a_script_that_makes_no_sense_is_refused_with_its_line() {
    for (script, complaint) in [
        ("nodes 2\nclaim n7 c1 1", "line 2: 'claim n7 c1 1': no node 'n7'"),
        ("dance", "no such command"),
        ("claim n0 c1 5", "5 units asked of a pool of 1"),
        ("deliver n0 n0", "no message number 1 from n0 to n0"),
        ("ring n0 grace", "n0 has not armed 'grace'"),
        ("crash n0\nclaim n0 c1 1", "n0 is down"),
        ("release c4", "c4 has claimed nothing"),
        ("advance 5", "'5' is no duration"),
    ] {
        let error = replay::<Toy>(script, pool).unwrap_err();
        assert!(error.contains(complaint), "{error}");
    }
}
