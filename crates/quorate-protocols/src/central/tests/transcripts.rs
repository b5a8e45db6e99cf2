//! Conversations worth reading: `testdata/central/*.txt`.

use std::path::Path;
use std::time::Duration;

use quorate_core::Lease;
use quorate_sim::{Setting, check_transcripts};

use crate::central::{Central, Pool};
use crate::goods::{Fairness, Goods};

fn pool(setting: &Setting) -> Pool {
    Pool::of(Goods {
        lease: Lease::new(setting.duration("lease", Duration::from_secs(10)), 200),
        fairness: Fairness::Backfill(setting.number("backfill", 0)),
        durable: setting.flag("durable"),
        ..Goods::new(setting.number("units", 1))
    })
}

#[test]
fn transcripts_say_what_happens() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/central");
    check_transcripts::<Central>(&folder, pool);
}
