//! Everything that can be chosen about a run, and the swarm: one seed draws all of it.

use std::fmt;
use std::time::Duration;

use crate::clock::DriftingClock;
use crate::council::CouncilPlan;
use crate::faults::{Faults, Profile, Recurring};
use crate::network::{Clusters, Delay, Links};
use crate::workload::{Arrivals, Want, Workload};
use crate::{Rng, Span, Time};

/// A run, completely.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Where all chance comes from.
    pub seed: u64,
    /// Nodes.
    pub nodes: u32,
    /// The pool, as far as it is the same for all protocols.
    pub pool: PoolPlan,
    /// Who asks for what.
    pub workload: Workload,
    /// What links are like.
    pub links: Links,
    /// How long a record takes to reach the disk.
    pub sync: Span,
    /// How wrong clocks really are, at most; never more than the pool declares.
    pub drift_ppm: u32,
    /// What goes wrong.
    pub faults: Faults,
    /// How long faults and new claims go on, in nanoseconds.
    pub duration: u64,
    /// Steps after which they end in any case.
    pub steps_max: u64,
    /// Grants after which they end in any case.
    pub grants_max: u64,
    /// How much longer than any protocol this one may go without granting anything, in nanoseconds:
    /// a token has to get round a ring, however large.
    pub silence: u64,
    /// The control plane, for protocols that ask one.
    pub council: Option<CouncilPlan>,
}

impl PoolPlan {
    /// Longer than any run: how long retries and leases last that are switched off.
    pub const NEVER: Duration = Duration::from_secs(1_000_000);

    /// How long a grant lasts, for protocols that live by leases.
    pub fn lease(&self) -> Duration {
        self.lease.unwrap_or(Self::NEVER)
    }
}

/// What pools of all protocols have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolPlan {
    /// Units.
    pub units: u32,
    /// How often a waiting claim may be overtaken; 0 is first come, first served.
    pub backfill: u32,
    /// How long a grant lasts without renewal; `None` is for ever.
    pub lease: Option<Duration>,
    /// How wrong clocks may be, as the pool declares it.
    pub drift_ppm: u32,
    /// How long participants wait before they say something again.
    pub retry: Duration,
    /// Whether promises are kept on disk.
    pub durable: bool,
    /// A node for protocols in which one is special.
    pub arbiter: u32,
}

/// What a protocol needs beyond the contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// Messages of one link arrive in order.
    pub order: bool,
    /// Messages are not lost, and arrive once.
    pub reliability: bool,
    /// Nodes do not crash and clients do not die: it has no leases that would make up for it.
    pub permanence: bool,
}

/// Typical durations, of which all others are multiples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Of a message, in nanoseconds.
    pub delay: u64,
    /// Of a lease, in nanoseconds.
    pub lease: u64,
}

impl Scale {
    /// A fault that comes several times in a lease, or once in many, and lasts `most` at most.
    fn recurring(self, rng: &mut Rng, most: u64) -> Recurring {
        let every = log_uniform(rng, self.lease / 2, 16 * self.lease).max(1);
        let shortest = self.delay.min(most).max(1);
        Recurring { every, lasts: Span::Exponential(log_uniform(rng, shortest, most)) }
    }
}

impl Plan {
    /// A quiet closed loop to start from: nothing goes wrong, links take a millisecond.
    pub fn quiet(seed: u64, nodes: u32, units: u32) -> Plan {
        let millisecond = 1_000_000;
        Plan {
            seed,
            nodes,
            pool: PoolPlan {
                units,
                backfill: 0,
                lease: Some(Duration::from_secs(10)),
                drift_ppm: 200,
                retry: Duration::from_secs(1),
                durable: false,
                arbiter: 0,
            },
            workload: Workload {
                arrivals: Arrivals::Closed {
                    clients_per_node: 1,
                    think: Span::Exponential(20 * millisecond),
                },
                hold: Span::Exponential(10 * millisecond),
                want: Want::always(1),
                cancel_ppm: 0,
                patience: Span::Exponential(50 * millisecond),
            },
            links: Links::reliable(Delay::Everywhere(Span::Constant(millisecond))),
            sync: Span::ZERO,
            drift_ppm: 0,
            faults: Faults::none(),
            duration: 10_000 * millisecond,
            steps_max: u64::MAX,
            grants_max: u64::MAX,
            silence: 0,
            council: None,
        }
    }

    /// Draws everything from one seed, extremes included.
    pub fn swarm(seed: u64, profile: Profile, needs: Needs) -> Plan {
        let mut rng = Rng::new(seed ^ 0x7377_6172_6d21);
        let rng = &mut rng;
        let nodes = *rng.pick(&[1, 2, 2, 3, 3, 3, 4, 5, 5, 7, 10, 16, 30]);
        let units = *rng.pick(&[1, 1, 2, 2, 3, 3, 4, 5, 8, 20]);
        let mut plan = Plan::quiet(seed, nodes, units);
        // All durations are multiples of a typical delay, which is itself anything from 10 us to
        // 100 ms.
        let delay = log_uniform(rng, 10_000, 100_000_000);
        plan.links.delay = draw_delay(rng, delay);
        plan.pool.backfill = *rng.pick(&[0, 0, 0, 1, 2, 5, 100]);
        let lease = delay * log_uniform(rng, 40, 3_000);
        plan.pool.lease = Some(Duration::from_nanos(lease));
        plan.pool.drift_ppm = *rng.pick(&[0, 200, 200, 10_000, 100_000]);
        let retry = (lease / log_uniform(rng, 3, 40)).max(4 * delay);
        plan.pool.retry = Duration::from_nanos(retry);
        plan.pool.durable = rng.chance(500_000);
        plan.pool.arbiter = rng.below(u64::from(nodes)) as u32;
        plan.workload = draw_workload(rng, Scale { delay, lease }, units);
        plan.duration = lease * log_uniform(rng, 10, 300);
        plan.steps_max = log_uniform(rng, 500, 8_000);
        let mut scale = Scale { delay, lease };
        if profile == Profile::Restarts {
            scale = plan.hold_for_leases(rng, scale);
        }
        plan.add_faults(rng, profile, needs, scale);
        plan
    }

    /// Adds the faults of a profile to a plan.
    pub fn add_faults(&mut self, rng: &mut Rng, profile: Profile, needs: Needs, scale: Scale) {
        let parts: Vec<Profile> = match profile {
            Profile::Everything => Profile::ALL[1..7].to_vec(),
            Profile::Swarm => {
                Profile::ALL[1..7].iter().copied().filter(|_| rng.chance(500_000)).collect()
            }
            one => vec![one],
        };
        for part in parts {
            match part {
                Profile::Crashes | Profile::Amnesia | Profile::Disk | Profile::Restarts
                    if needs.permanence => {}
                Profile::Crashes => self.add_crashes(rng, scale),
                Profile::Amnesia => {
                    self.add_crashes(rng, scale);
                    self.faults.amnesia_ppm = *rng.pick(&[500_000, 1_000_000]);
                }
                Profile::Network => self.add_network_faults(rng, needs, scale),
                Profile::Clients => self.add_client_faults(rng, scale),
                Profile::Clocks => self.add_clock_faults(rng, scale),
                Profile::Disk => self.add_disk_faults(rng, scale),
                Profile::Restarts => {
                    let lasts = Span::Uniform { low: 0, high: scale.lease / 3 };
                    self.faults.restarts = Some(lasts);
                    self.faults.greetings = true;
                    self.faults.detection = Some(Span::Uniform { low: 0, high: scale.lease / 6 });
                }
                Profile::Hangups => {
                    self.faults.hangup_ppm = *rng.pick(&[100_000, 300_000, 700_000]);
                    let patience = scale.delay * log_uniform(rng, 1, 300);
                    self.workload.patience = Span::Exponential(patience);
                    let notices = scale.delay * log_uniform(rng, 1, 100);
                    self.faults.respawn = Span::Exponential(notices);
                    if !needs.permanence && rng.chance(500_000) {
                        self.add_crashes(rng, scale);
                        self.faults.greetings = true;
                    }
                }
                Profile::None | Profile::Everything | Profile::Swarm => {}
            }
        }
        // Without a lease, whoever vanishes takes its units along for good.
        if self.pool.lease.is_none() || needs.permanence {
            self.faults.holder_death_ppm = 0;
            self.faults.waiter_death_ppm = 0;
            self.faults.hangup_ppm = 0;
            self.faults.amnesia_ppm = 0;
        }
    }

    fn add_crashes(&mut self, rng: &mut Rng, scale: Scale) {
        self.faults.crashes = Some(scale.recurring(rng, scale.lease));
        self.faults.mid_step_ppm = *rng.pick(&[0, 500_000, 1_000_000]);
        self.faults.detection = Some(Span::Exponential(scale.delay * log_uniform(rng, 1, 100)));
    }

    fn add_network_faults(&mut self, rng: &mut Rng, needs: Needs, scale: Scale) {
        if !needs.reliability {
            self.links.loss_ppm = *rng.pick(&[0, 1_000, 10_000, 100_000, 300_000]);
            self.links.duplicate_ppm = *rng.pick(&[0, 10_000, 100_000, 500_000]);
            self.links.cuts_hold = rng.chance(500_000);
        }
        self.links.ordered = needs.order || rng.chance(300_000);
        let mut recurring = || {
            let recurring = scale.recurring(rng, 2 * scale.lease);
            rng.chance(700_000).then_some(recurring)
        };
        self.faults.cuts = recurring();
        self.faults.slow_links = recurring();
        self.faults.slander = recurring();
    }

    fn add_client_faults(&mut self, rng: &mut Rng, scale: Scale) {
        self.workload.cancel_ppm = *rng.pick(&[0, 50_000, 300_000, 1_000_000]);
        self.workload.patience = Span::Exponential(scale.delay * log_uniform(rng, 1, 300));
        self.faults.holder_death_ppm = *rng.pick(&[0, 10_000, 200_000]);
        self.faults.waiter_death_ppm = *rng.pick(&[0, 10_000, 200_000]);
        self.faults.client_pause_ppm = *rng.pick(&[0, 50_000, 500_000]);
        self.faults.noticed_ppm = *rng.pick(&[0, 500_000, 1_000_000]);
        self.faults.respawn = Span::Exponential(scale.delay * log_uniform(rng, 1, 100));
    }

    fn add_clock_faults(&mut self, rng: &mut Rng, scale: Scale) {
        self.drift_ppm = self.pool.drift_ppm;
        let every = scale.recurring(rng, scale.lease).every;
        self.faults.clock_changes = Some(Recurring { every, lasts: Span::ZERO });
        self.faults.pauses = Some(scale.recurring(rng, 2 * scale.lease));
    }

    fn add_disk_faults(&mut self, rng: &mut Rng, scale: Scale) {
        let delay = scale.delay;
        self.pool.durable = true;
        self.sync = match rng.below(3) {
            0 => Span::Constant(delay),
            1 => Span::Exponential(delay * log_uniform(rng, 1, 10)),
            _ => Span::Uniform { low: delay / 10, high: delay * 3 },
        };
        self.faults.torn_tail_ppm = *rng.pick(&[0, 500_000, 1_000_000]);
        if self.faults.crashes.is_none() {
            self.add_crashes(rng, scale);
        }
    }

    /// Holders to whom restarts matter: units are held for leases, each of which is long enough for
    /// many messages.
    fn hold_for_leases(&mut self, rng: &mut Rng, scale: Scale) -> Scale {
        let lease = scale.lease.max(400 * scale.delay);
        let retry = (lease / log_uniform(rng, 8, 40)).max(4 * scale.delay);
        self.pool.lease = Some(Duration::from_nanos(lease));
        self.pool.retry = Duration::from_nanos(retry);
        self.pool.durable = rng.chance(250_000);
        // What is granted after a long wait is promised from its beginning, less the drift.
        self.pool.drift_ppm = self.pool.drift_ppm.min(200);
        self.drift_ppm = self.pool.drift_ppm;
        self.workload.hold = Span::Exponential(lease * rng.between(1, 5));
        let think = Span::Exponential(log_uniform(rng, scale.delay, lease));
        let clients_per_node = *rng.pick(&[1, 1, 2, 3, 5]);
        self.workload.arrivals = Arrivals::Closed { clients_per_node, think };
        self.duration = lease * rng.between(15, 40);
        self.steps_max = 20_000;
        Scale { lease, ..scale }
    }

    /// How many clients there are from the start.
    pub(crate) fn clients(&self) -> usize {
        match &self.workload.arrivals {
            Arrivals::Closed { clients_per_node, .. } => {
                self.nodes as usize * *clients_per_node as usize
            }
            Arrivals::Open { .. } => 0,
            Arrivals::Script(arrivals) => arrivals.len(),
        }
    }

    /// A clock of a node: a random origin, since readings of different nodes must not be compared.
    pub(crate) fn draw_clock(&self, rng: &mut Rng) -> DriftingClock {
        let origin = rng.below(1 << 50);
        DriftingClock::new(origin, self.draw_rate(rng))
    }

    /// How wrong a clock is, in millionths; often as wrong as it may be.
    pub(crate) fn draw_rate(&self, rng: &mut Rng) -> i32 {
        let most = i64::from(self.drift_ppm);
        let rate = match rng.below(4) {
            0 => most,
            1 => -most,
            _ => rng.below(2 * most as u64 + 1) as i64 - most,
        };
        rate as i32
    }

    /// Longer than anything that is still on its way to happen can take without a fault: if nothing
    /// was granted or reclaimed for so long, nothing will be.
    pub(crate) fn patience(&self) -> u64 {
        let lease = self.pool.lease.map_or(0, |lease| Time::from(lease).0);
        let retry = Time::from(self.pool.retry).0;
        let think = match &self.workload.arrivals {
            Arrivals::Closed { think, .. } => think.mean(),
            _ => 0,
        };
        let crash = self.faults.crashes.map_or(0, |crashes| crashes.lasts.mean());
        let work = self.workload.hold.mean() + think + self.faults.respawn.mean() + crash;
        let ways = self.links.delay.mean() + self.sync.mean();
        let most = 4 * lease + 20 * retry + 40 * work + 400 * ways + 1_000_000;
        most.saturating_add(self.silence)
    }
}

fn draw_workload(rng: &mut Rng, scale: Scale, units: u32) -> Workload {
    let delay = scale.delay;
    let think = log_uniform(rng, delay / 4, 500 * delay);
    let think = if rng.chance(200_000) { Span::ZERO } else { draw_span(rng, think) };
    let hold = match rng.below(10) {
        0 => Span::ZERO,
        // Around the length of a lease, where renewals matter.
        1..=3 => {
            let mean = log_uniform(rng, scale.lease / 4, 2 * scale.lease);
            draw_span(rng, mean)
        }
        _ => {
            let mean = log_uniform(rng, delay / 4, 250 * delay);
            draw_span(rng, mean)
        }
    };
    let arrivals = if rng.chance(150_000) {
        Arrivals::Open {
            every: (think.mean() + hold.mean()).max(delay / 2),
            clients_max: *rng.pick(&[10, 100]),
        }
    } else {
        Arrivals::Closed { clients_per_node: *rng.pick(&[1, 1, 1, 2, 3, 5]), think }
    };
    let want = match rng.below(4) {
        0 => Want::always(1),
        1 => Want::always(units),
        2 => Want::weighted((1..=units).map(|h| (h, 1)).collect()).expect("sound"),
        _ => Want::weighted(vec![(1, 80), (units, 20)]).expect("sound"),
    };
    let patience = Span::Exponential(delay * 50);
    Workload { arrivals, hold, want, cancel_ppm: 0, patience }
}

fn draw_span(rng: &mut Rng, mean: u64) -> Span {
    match rng.below(4) {
        0 => Span::Constant(mean),
        1 => Span::Uniform { low: 0, high: 2 * mean },
        _ => Span::Exponential(mean),
    }
}

fn draw_delay(rng: &mut Rng, mean: u64) -> Delay {
    Delay::Everywhere(match rng.below(5) {
        0 => Span::Constant(mean),
        1 => Span::Uniform { low: 0, high: 2 * mean },
        2 => Span::Exponential(mean),
        3 => Span::Normal { mean, deviation: mean / 2 },
        _ => {
            let matrix = vec![mean / 10, mean, mean, mean / 10];
            return Delay::Clusters(Clusters::new(matrix).expect("two by two"));
        }
    })
}

/// From `low` to `high`, every doubling equally likely.
fn log_uniform(rng: &mut Rng, low: u64, high: u64) -> u64 {
    let (low, high) = (low.max(1), high.max(1));
    let doublings = (high / low).max(1).ilog2() + 1;
    let start = low << rng.below(u64::from(doublings));
    rng.between(start, 2 * start).min(high)
}

/// The plan in one line for each topic.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PoolPlan { units, backfill, lease, drift_ppm, retry, durable, arbiter } = self.pool;
        write!(f, "seed {:#x}: {} nodes share {units} units", self.seed, self.nodes)?;
        write!(f, " (special node n{arbiter}, backfill {backfill}, durable {durable}, lease ")?;
        match lease {
            Some(lease) => write!(f, "{} +-{drift_ppm} ppm", Time::from(lease))?,
            None => f.write_str("for ever")?,
        }
        writeln!(f, ", retry {})", Time::from(retry))?;
        match &self.workload.arrivals {
            Arrivals::Closed { clients_per_node, think } => {
                write!(f, "clients: {clients_per_node} at each node, think {think}")?;
            }
            Arrivals::Open { every, clients_max } => {
                write!(f, "clients: one every {} or so", Time(*every))?;
                if *clients_max < u32::MAX {
                    write!(f, ", {clients_max} at most")?;
                }
            }
            Arrivals::Script(arrivals) => write!(f, "clients: {} by script", arrivals.len())?,
        }
        let Workload { hold, want, cancel_ppm, .. } = &self.workload;
        writeln!(f, ", want {want}, hold {hold}, cancel {}", Percent(*cancel_ppm))?;
        let Links { delay, ordered, loss_ppm, duplicate_ppm, .. } = &self.links;
        let order = if *ordered { "ordered" } else { "reordering" };
        write!(f, "links: {delay}, {order}, lose {}", Percent(*loss_ppm))?;
        write!(f, ", repeat {}; disk: {}", Percent(*duplicate_ppm), self.sync)
    }
}

struct Percent(u32);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 10_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_plan_again_and_another_seed_another() {
        for profile in Profile::ALL {
            let plan = Plan::swarm(0x5eed, profile, Needs::default());
            assert_eq!(plan, Plan::swarm(0x5eed, profile, Needs::default()));
            assert_ne!(plan, Plan::swarm(0x5eee, profile, Needs::default()));
        }
    }

    #[test]
    fn swarm_reaches_its_extremes_and_respects_needs() {
        let needs = Needs { order: true, reliability: true, permanence: true };
        let plans: Vec<Plan> =
            (0..500).map(|s| Plan::swarm(s, Profile::Everything, needs)).collect();
        assert!(plans.iter().any(|plan| plan.nodes == 1));
        assert!(plans.iter().any(|plan| plan.nodes == 30));
        assert!(plans.iter().any(|plan| plan.workload.hold == Span::ZERO));
        assert!(plans.iter().any(|plan| plan.pool.units == 1));
        assert!(plans.iter().all(|plan| plan.links.ordered && plan.links.loss_ppm == 0));
        assert!(plans.iter().all(|plan| plan.faults.crashes.is_none()));
        assert!(plans.iter().all(|plan| plan.drift_ppm <= plan.pool.drift_ppm));
        assert!(plans.iter().all(|plan| plan.workload.want.most() <= plan.pool.units));
    }

    #[test]
    fn a_log_uniform_draw_stays_in_range() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u64> = (0..10_000).map(|_| log_uniform(&mut rng, 10, 1_000)).collect();
        assert!(drawn.iter().all(|draw| (10..=1_000).contains(draw)));
        assert!(drawn.iter().any(|draw| *draw < 15));
        assert!(drawn.iter().any(|draw| *draw > 900));
    }
}
