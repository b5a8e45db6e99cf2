//! What only a protocol knows, for Prometheus: one metric per fact, `quorate_protocol_NAME`.
//!
//! A metric per fact and not one for all with the fact as a label: what is summed or averaged over
//! the labels of a metric should mean something, and counters and gauges cannot share one. The
//! price is that their names are known only when a seat shows them, so they are collected and not
//! registered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use quorate_core::Fact;

/// Name, and whether it only grows; then pool and peer; then how much.
type Table = BTreeMap<(&'static str, bool), BTreeMap<(String, Option<String>), u64>>;

/// Facts as they were last measured.
#[derive(Clone, Default, Debug)]
pub(crate) struct Facts {
    table: Arc<Mutex<Table>>,
}

impl Facts {
    /// Forgets everything, before it is measured again.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Adds a fact about a pool; those of several pools of one definition are summed up.
    pub(crate) fn add(&self, pool: &str, fact: &Fact, peer: Option<&str>) {
        let mut table = self.lock();
        let lines = table.entry((fact.name, fact.grows)).or_default();
        let sum = lines.entry((pool.to_owned(), peer.map(str::to_owned))).or_default();
        *sum = sum.saturating_add(fact.value);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Facts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for ((name, grows), lines) in &*self.lock() {
            let kind = if *grows { MetricType::Counter } else { MetricType::Gauge };
            let full = format!("protocol_{name}");
            let help = format!("{}, as the pool's protocol tells it", name.replace('_', " "));
            let mut metric = encoder.encode_descriptor(&full, &help, None, kind)?;
            for ((pool, peer), value) in lines {
                let mut labels = vec![("pool", pool.as_str())];
                labels.extend(peer.as_ref().map(|peer| ("peer", peer.as_str())));
                let mut line = metric.encode_family(&labels)?;
                if *grows {
                    line.encode_counter::<prometheus_client::encoding::NoLabelSet, _, u64>(
                        value, None,
                    )?;
                } else {
                    line.encode_gauge(&i64::try_from(*value).unwrap_or(i64::MAX))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;
    use quorate_core::NodeId;

    use super::*;

    #[test]
    fn every_fact_is_a_metric_of_its_own() {
        let facts = Facts::default();
        let mut registry = Registry::with_prefix("quorate");
        registry.register_collector(Box::new(facts.clone()));
        facts.add("gone", &Fact::gauge("blind", 1u64), None);
        facts.clear();
        for _ in 0..2 {
            facts.add("p", &Fact::counter("tokens_made", 3u64), None);
        }
        facts.add("p", &Fact::gauge("suspected", 1u64).about(NodeId(2)), Some("c"));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert_eq!(
            text,
            "# HELP quorate_protocol_suspected suspected, as the pool's protocol tells it\n\
             # TYPE quorate_protocol_suspected gauge\n\
             quorate_protocol_suspected{pool=\"p\",peer=\"c\"} 1\n\
             # HELP quorate_protocol_tokens_made tokens made, as the pool's protocol tells it\n\
             # TYPE quorate_protocol_tokens_made counter\n\
             quorate_protocol_tokens_made_total{pool=\"p\"} 6\n# EOF\n"
        );
    }
}
