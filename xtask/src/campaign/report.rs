//! What a campaign amounts to: a page with workloads by faults, and one line of JSON.

use std::collections::BTreeMap;

use super::json::quoted;
use super::play::Result;
use super::timeline::{STYLE, escaped};

/// Draws of one kind.
#[derive(Default)]
struct Sum {
    draws: usize,
    broken: usize,
    claims: usize,
    holds: usize,
    lost: usize,
    probes: usize,
    granted: usize,
    overlaps: usize,
    recovery: Vec<f64>,
}

impl Sum {
    fn add(&mut self, result: &Result) {
        let summary = &result.summary;
        self.draws += 1;
        self.broken += usize::from(!summary.breaches.is_empty());
        self.claims += summary.claims;
        self.holds += summary.holds;
        self.lost += summary.lost;
        self.probes += summary.probes;
        self.granted += summary.granted;
        self.overlaps += usize::from(summary.overlaps > 0);
        self.recovery.extend(&summary.recovery);
    }

    fn availability(&self) -> String {
        match self.probes {
            0 => "–".into(),
            probes => format!("{:.0} %", 100.0 * self.granted as f64 / probes as f64),
        }
    }

    /// Of all nodes and draws.
    fn recovery(&self, share: f64) -> String {
        let mut sorted = self.recovery.clone();
        sorted.sort_by(f64::total_cmp);
        let place = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
        sorted.get(place).map_or("–".into(), |seconds| format!("{seconds:.1}"))
    }
}

fn by(results: &[Result], key: impl Fn(&Result) -> Vec<String>) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for result in results {
        for name in key(result) {
            sums.entry(name).or_default().add(result);
        }
    }
    sums
}

fn faults(result: &Result) -> Vec<String> {
    result.draw.faults.iter().map(|fault| fault.name.to_owned()).collect()
}

fn table(title: &str, sums: &BTreeMap<String, Sum>) -> String {
    let mut rows = String::new();
    for (name, sum) in sums {
        rows += &format!(
            "<tr class=\"{}\"><td>{name}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            if sum.broken > 0 { "bad" } else { "" },
            sum.draws,
            sum.broken,
            sum.claims,
            sum.holds,
            sum.lost,
            sum.availability(),
            sum.recovery(0.0),
            sum.recovery(0.5),
            sum.recovery(0.9),
            sum.recovery(1.0),
        );
    }
    format!(
        "<h2>{title}</h2><table><tr><th></th><th>draws</th><th>with a breach</th><th>claims</th>\
         <th>holds judged</th><th>lost</th><th>probes granted during the fault</th>\
         <th>recovery, s: least</th><th>median</th><th>nine tenths</th><th>most</th></tr>\
         {rows}</table>"
    )
}

/// The page.
pub(crate) fn page(results: &[Result], again: &str) -> String {
    let all = by(results, |_| vec!["all".into()]);
    let (works, harms) =
        (by(results, |one| vec![one.draw.workload.name.into()]), by(results, faults));
    let mut matrix = String::from("<h2>Workload × fault</h2><table><tr><th></th>");
    works.keys().for_each(|name| matrix += &format!("<th>{name}</th>"));
    matrix += "</tr>";
    for fault in harms.keys() {
        matrix += &format!("<tr><td>{fault}</td>");
        for work in works.keys() {
            let mut sum = Sum::default();
            let of = |one: &&Result| one.draw.workload.name == work && faults(one).contains(fault);
            results.iter().filter(of).for_each(|one| sum.add(one));
            matrix += &match sum.draws {
                0 => "<td></td>".into(),
                draws => format!(
                    "<td class=\"{}\" title=\"draws, holds judged, probes granted\">{draws} / {} / \
                     {}</td>",
                    if sum.broken > 0 { "bad" } else { "good" },
                    sum.holds,
                    sum.availability()
                ),
            };
        }
        matrix += "</tr>";
    }
    matrix += "</table>";
    let mut broken = String::new();
    for result in results.iter().filter(|one| !one.summary.breaches.is_empty()) {
        let breaches: Vec<String> =
            result.summary.breaches.iter().map(|breach| escaped(breach)).collect();
        let kept = result.kept.as_ref().and_then(|kept| kept.file_name()).unwrap_or_default();
        let kept = kept.to_string_lossy();
        broken += &format!(
            "<h3>{}</h3><pre>{}</pre><p><a href=\"{kept}/timeline.html\">timeline</a>, \
             <a href=\"{kept}/README\">what happened when</a></p>",
            escaped(&result.draw.shown()),
            breaches.join("\n"),
        );
    }
    let beyond = match all.values().map(|sum| sum.overlaps).sum::<usize>() {
        0 => String::new(),
        draws => format!(
            "<p>In {draws} draws clocks differed by more than is declared, and units had two \
             holders: that is no breach, since leases rest on clocks.</p>"
        ),
    };
    let protocols = by(results, |one| vec![one.draw.protocol.name().into()]);
    format!(
        "<!doctype html><meta charset=\"utf-8\"><title>campaign</title><style>{STYLE}</style>\
         <h1>Campaign</h1><pre>{}</pre>{}{beyond}{}{}{}{matrix}<h2>Breaches</h2>{}",
        escaped(again),
        table("In all", &all),
        table("By protocol", &protocols),
        table("By fault", &harms),
        table("By workload", &works),
        if broken.is_empty() { "<p>None.</p>" } else { &broken },
    )
}

/// One object for each draw.
pub(crate) fn json(results: &[Result]) -> String {
    let one = |result: &Result| {
        let list = |names: Vec<String>| {
            names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",")
        };
        let summary = &result.summary;
        let recovery: Vec<String> =
            summary.recovery.iter().map(|seconds| format!("{seconds:.3}")).collect();
        format!(
            "{{\"seed\":{},\"workload\":{},\"faults\":[{}],\"protocol\":{},\"hosts\":{},\
             \"units\":{},\"lease_ms\":{},\"durable\":{},\"claims\":{},\"holds\":{},\"lost\":{},\
             \"probes\":{},\"granted\":{},\"overlaps\":{},\"recovery_s\":[{}],\
             \"all_units_s\":{:.3},\
             \"seconds\":{:.1},\"breaches\":[{}]}}",
            result.draw.seed,
            quoted(result.draw.workload.name),
            list(faults(result)),
            quoted(result.draw.protocol.name()),
            result.draw.hosts,
            result.draw.units,
            result.draw.lease.as_millis(),
            result.draw.durable,
            summary.claims,
            summary.holds,
            summary.lost,
            summary.probes,
            summary.granted,
            summary.overlaps,
            recovery.join(","),
            summary.all_units,
            result.seconds,
            list(summary.breaches.clone()),
        )
    };
    format!("[{}]", results.iter().map(one).collect::<Vec<_>>().join(",\n"))
}
