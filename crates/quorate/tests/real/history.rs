//! What clients did and were told, as they wrote it down, and whether the laws held.
//!
//! A *definite hold* runs from the ok of an acquire to the invocation of its release, and no
//! further than the client's own deadline. A client that was killed counts as using its units until
//! the last deadline it wrote down: nobody may rely on knowing that it is dead.
//!
//! Clients cannot tell in which order an arbiter booked and granted their claims: requests and
//! answers are on their way for some time. So an onlooker reads the books, and writes down when it
//! asked and when it was answered. B has certainly overtaken A if A was seen waiting before B was
//! made, and again in an answer to a question that was asked after B's client had its grant. That
//! is less than every overtaking, and never more. Books that are lost in a restart start anew, so
//! this is judged only where no node restarts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use quorate_core::{ClaimId, Fence, Refusal, Share, Shares, Unit, Units};
use quorate_laws::{Breach, End, Observation, StatuteBook};

/// One thing a client wrote down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// On the machine's clock.
    pub(crate) at: u64,
    pub(crate) pool: String,
    pub(crate) claim: u128,
    pub(crate) what: What,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Claimed {
        units: u32,
    },
    Granted {
        deadline: u64,
        shares: Vec<(u32, u64)>,
    },
    Extended {
        deadline: u64,
    },
    /// About to release, or told that it must stop.
    Stopped {
        told: bool,
    },
    /// The cancellation was acknowledged.
    Cancelled,
    /// Gave up without knowing.
    Abandoned,
    /// Not by the client: an onlooker that asked then is told that the claim is booked and waits.
    Waits {
        asked: u64,
    },
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:x} ", self.at, self.pool, self.claim)?;
        match &self.what {
            What::Claimed { units } => write!(f, "claimed {units}"),
            What::Granted { deadline, shares } => {
                write!(f, "granted {deadline}")?;
                shares.iter().try_for_each(|(unit, fence)| write!(f, " {unit}:{fence}"))
            }
            What::Extended { deadline } => write!(f, "extended {deadline}"),
            What::Stopped { told } => write!(f, "stopped {}", u8::from(*told)),
            What::Cancelled => f.write_str("cancelled"),
            What::Abandoned => f.write_str("abandoned"),
            What::Waits { asked } => write!(f, "waits {asked}"),
        }
    }
}

impl FromStr for Line {
    type Err = ();

    /// A client that is killed may leave half a line behind, which is no line.
    fn from_str(text: &str) -> Result<Line, ()> {
        fn number<T: FromStr>(text: Option<&str>) -> Result<T, ()> {
            text.and_then(|text| text.parse().ok()).ok_or(())
        }
        let mut words = text.split(' ');
        let at = number(words.next())?;
        let pool = words.next().ok_or(())?.to_owned();
        let claim = words.next().and_then(|id| u128::from_str_radix(id, 16).ok()).ok_or(())?;
        let what = match words.next().ok_or(())? {
            "claimed" => What::Claimed { units: number(words.next())? },
            "granted" => {
                let deadline = number(words.next())?;
                let share = |word: &str| {
                    let (unit, fence) = word.split_once(':').ok_or(())?;
                    Ok((number(Some(unit))?, number(Some(fence))?))
                };
                What::Granted { deadline, shares: words.map(share).collect::<Result<_, ()>>()? }
            }
            "extended" => What::Extended { deadline: number(words.next())? },
            "stopped" => What::Stopped { told: number::<u8>(words.next())? == 1 },
            "cancelled" => What::Cancelled,
            "abandoned" => What::Abandoned,
            "waits" => What::Waits { asked: number(words.next())? },
            _ => return Err(()),
        };
        Ok(Line { at, pool, claim, what })
    }
}

/// What a history amounts to.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Summary {
    pub(crate) claims: usize,
    pub(crate) grants: usize,
    /// Holds that ended because the client was told so or reached its deadline.
    pub(crate) lost: usize,
    /// Most units in use at once.
    pub(crate) peak: u64,
}

/// One claim's story.
#[derive(Default)]
struct Story {
    claimed: Option<(u64, u32)>,
    granted: Option<(u64, Vec<(u32, u64)>)>,
    deadline: u64,
    stopped: Option<(u64, bool)>,
    over: Option<(u64, bool)>,
    /// When an onlooker was told that it waits, and when it had asked.
    waits: Vec<(u64, u64)>,
}

/// Judges what happened in one pool of `k` units, which have names or do not.
pub(crate) fn judge(lines: &[Line], k: u32, named: bool) -> Result<Summary, Breach> {
    let stories = stories(lines);
    let mut summary = Summary { claims: stories.len(), ..Summary::default() };
    let shares: BTreeMap<u128, Shares> = stories
        .iter()
        .filter_map(|(id, story)| Some((*id, to_shares(&story.granted.as_ref()?.1))))
        .collect();
    // At one moment, ends come before grants.
    let mut seen: Vec<(u64, u8, Observation<'_>)> = Vec::new();
    for (id, story) in &stories {
        let claim = ClaimId { origin: (*id >> 64) as u64, serial: *id as u64 };
        let Some((at, h)) = story.claimed else { continue };
        let units = Units::new(h, h).expect("clients ask for something");
        seen.push((at, 1, Observation::Claimed { claim, units }));
        let over = story.over.map(|(at, known)| {
            let seen = match known {
                true => Observation::Refused { claim, why: Refusal::Cancelled },
                false => Observation::Abandoned { claim },
            };
            (at, 1, seen)
        });
        seen.extend(over);
        let Some((at, _)) = &story.granted else { continue };
        let (stopped, told) = story.stopped.unwrap_or((u64::MAX, true));
        let end = stopped.min(story.deadline);
        if end <= *at {
            // Read too late to be used, and not used.
            seen.push((*at, 1, Observation::Abandoned { claim }));
            continue;
        }
        summary.grants += 1;
        summary.lost += usize::from(told || story.deadline < stopped);
        let how = if stopped < story.deadline { End::Released } else { End::Deadline };
        seen.push((*at, 2, Observation::Granted { claim, shares: &shares[id] }));
        seen.push((end, 0, Observation::Ended { claim, shares: &shares[id], how }));
    }
    seen.sort_by_key(|(at, rank, _)| (*at, *rank));
    let book = StatuteBook::new(k, None);
    let mut book = if named { book } else { book.anonymous() };
    for (_, _, observation) in seen {
        book.see(observation)?;
        summary.peak = summary.peak.max(book.in_use());
    }
    Ok(summary)
}

/// How often somebody was certainly overtaken in one pool, and never more often than `bound` for
/// any one claim.
pub(crate) fn judge_overtaking(lines: &[Line], bound: u32) -> Result<usize, Breach> {
    let stories = stories(lines);
    let mut overtakes = 0;
    for (id, story) in &stories {
        // A node that its client left may ask again for a claim that is over: that is another wait.
        let granted = story.granted.as_ref().map_or(u64::MAX, |(at, _)| *at);
        let end = story.over.map_or(granted, |(at, _)| at.min(granted));
        let last = story.waits.iter().map(|(_, asked)| *asked).filter(|asked| *asked < end).max();
        let first = story.waits.iter().map(|(at, _)| *at).min();
        let (Some(first), Some(last)) = (first, last) else { continue };
        let passes = |other: &&Story| {
            let made = other.claimed.is_some_and(|(at, _)| at > first);
            made && other.granted.as_ref().is_some_and(|(at, _)| *at < last)
        };
        let passed = stories.values().filter(passes).count();
        overtakes += passed;
        if passed > bound as usize {
            let what = format!("{id:x} was overtaken {passed} times, and {bound} are promised");
            return Err(Breach { law: "bounded overtaking", what });
        }
    }
    Ok(overtakes)
}

fn stories(lines: &[Line]) -> BTreeMap<u128, Story> {
    let mut stories: BTreeMap<u128, Story> = BTreeMap::new();
    for Line { at, claim, what, .. } in lines {
        let story = stories.entry(*claim).or_default();
        match what {
            What::Claimed { units } => story.claimed = Some((*at, *units)),
            What::Granted { deadline, shares } => {
                story.granted = Some((*at, shares.clone()));
                story.deadline = story.deadline.max(*deadline);
            }
            What::Extended { deadline } => story.deadline = story.deadline.max(*deadline),
            What::Stopped { told } => {
                let first = story.stopped.is_none_or(|(before, _)| *at < before);
                if first {
                    story.stopped = Some((*at, *told));
                }
            }
            What::Cancelled => story.over = Some((*at, true)),
            What::Abandoned => story.over = Some((*at, false)),
            What::Waits { asked } => story.waits.push((*at, *asked)),
        }
    }
    stories
}

fn to_shares(shares: &[(u32, u64)]) -> Shares {
    let share = |&(unit, fence): &(u32, u64)| Share { unit: Unit(unit), fence: Fence(fence) };
    Shares::new(&shares.iter().map(share).collect::<Vec<_>>())
}

/// Histories with a bug in them, each of which must be found.
pub(crate) fn check_the_checker() {
    let lines = |text: &str| -> Vec<Line> {
        text.lines().map(|line| line.trim().parse().expect("a line")).collect()
    };
    let good = "10 p 1 claimed 2\n20 p 1 granted 100 0:1 1:1\n30 p 2 claimed 1\n\
                40 p 1 stopped 0\n50 p 2 granted 300 1:2";
    for text in good.lines() {
        assert_eq!(text.parse::<Line>().expect("a line").to_string(), text);
    }
    let summary = judge(&lines(good), 2, true).expect("nothing is wrong with it");
    assert_eq!((summary.claims, summary.grants, summary.peak), (2, 2, 2));
    for (from, to, law) in [
        // A grant before the holder stopped, by count and by unit.
        ("40 p 1 stopped", "60 p 1 stopped", "capacity"),
        // A holder that is never heard of again has its units until its deadline...
        ("40 p 1 stopped 0", "40 p 3 claimed 1", "capacity"),
        // ...which a renewal moved.
        ("40 p 1 stopped 0\n50 p 2", "40 p 1 extended 200\n150 p 2", "capacity"),
        ("1:2", "1:1", "fence order"),
        ("50 p 2 granted 300 1:2", "50 p 2 granted 300 0:2 1:2", "one grant per claim"),
        ("50 p 2 granted", "45 p 2 cancelled\n50 p 2 granted", "cancelled is over"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        let law_broken = judge(&lines(&bad), 2, true).expect_err(&bad).law;
        assert_eq!(law_broken, law, "{bad}");
    }
    let same_unit = good.replacen("40 p 1 stopped", "60 p 1 stopped", 1);
    assert_eq!(judge(&lines(&same_unit), 3, true).expect_err("two users").law, "exclusivity");
    assert!(judge(&lines(&same_unit), 3, false).is_ok(), "where units have no names");
    assert_eq!(judge(&lines(&same_unit), 2, false).expect_err("three of two").law, "capacity");
    let past_deadline = good.replacen("40 p 1 stopped 0\n50 p 2", "110 p 1 stopped 0\n105 p 2", 1);
    assert!(judge(&lines(&past_deadline), 2, true).is_ok(), "the deadline ends a hold");
    // 2 waits before 3 and 4 are made, and still waits when 3 has its grant.
    let queue = "10 p 2 claimed 2\n20 p 2 waits 15\n30 p 3 claimed 1\n40 p 3 granted 900 0:1\n\
                 50 p 4 claimed 1\n55 p 2 waits 52\n60 p 4 granted 900 1:2\n70 p 2 waits 59";
    assert_eq!(judge_overtaking(&lines(queue), 1), Ok(1));
    assert_eq!(judge_overtaking(&lines(queue), 0).expect_err("3").law, "bounded overtaking");
    let twice = queue.replacen("waits 59", "waits 61", 1);
    assert_eq!(judge_overtaking(&lines(&twice), 1).expect_err("3, 4").law, "bounded overtaking");
    // Who was made before anybody saw the other wait may have been booked before it.
    let earlier = queue.replacen("30 p 3", "19 p 3", 1);
    assert_eq!(judge_overtaking(&lines(&earlier), 0), Ok(0));
    assert_eq!("12 p 1 gran".parse::<Line>(), Err(()));
}
