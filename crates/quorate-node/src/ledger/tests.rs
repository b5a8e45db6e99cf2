use super::*;

/// A client that shows what it got elsewhere was not granted anything here.
#[test]
fn grants_are_numbered_and_copies_have_no_number() {
    let (mut ledger, second) = (Ledger::default(), |s: u64| Moment(s * 1_000_000_000));
    let shares = || Shares::new(&[]);
    let granted = || State::Granted { shares: shares(), until: second(30), since: second(20) };
    let shown = || State::Shown { shares: shares(), until: second(9) };
    let id = |serial| ClaimId { origin: 1, serial };
    for (serial, before) in [(1, State::Waiting), (2, shown()), (3, State::Waiting)] {
        ledger.insert(id(serial), Claimed::new(1.into(), second(1), before));
        ledger.change(&id(serial), granted());
        ledger.change(&id(serial), granted());
    }
    let number = |serial| ledger.get(&id(serial)).and_then(|claimed| claimed.grant);
    assert_eq!([1, 2, 3].map(number), [Some(1), None, Some(2)]);
}

#[test]
fn an_answer_counts_from_the_receipt_of_its_own_request() {
    let lease = Lease::new(Duration::from_secs(10), 100_000);
    let terms = Terms { lease, labels: None, about: None, decides: None };
    let second = |s: u64| Moment(s * 1_000_000_000);
    let granted = State::Granted { shares: Shares::new(&[]), until: second(30), since: second(20) };
    let claimed = Claimed::new(1.into(), second(5), granted);
    let id = ClaimId::default();
    // Asked at 8, granted at 20, until 30: 22 seconds from the receipt, less the drift.
    let early = claimed.snapshot(id, &terms, second(8), second(20));
    assert_eq!(early.valid_for, Duration::from_secs(18));
    assert_eq!(early.waited, Duration::from_secs(15));
    // Asked again later: less is left of the same promise.
    let late = claimed.snapshot(id, &terms, second(29), second(29));
    assert!(late.valid_for < Duration::from_secs(1));
    assert_eq!(claimed.snapshot(id, &terms, second(31), second(31)).valid_for, Duration::ZERO);
}
