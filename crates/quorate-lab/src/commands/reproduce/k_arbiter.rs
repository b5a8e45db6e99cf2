//! What k-arbiters and anonymous resources are said to do, where a protocol that Quorate has is
//! asked.

use quorate_papers::{Evidence, Found, Grid, Pace, Tally};

use super::explored::{explore, measure, or_failed};
use crate::commands::sim::worst;
use crate::experiment::Metric;

pub(super) const EVIDENCE: &[(&str, Evidence)] = &[
    ("tokens_or_quorums", tokens_or_quorums),
    ("five_messages_for_each_member", five_messages_for_each_member),
    ("raymond_admits_k", raymond_admits_k),
];

fn tokens_or_quorums(pace: Pace) -> Found {
    or_failed((|| {
        let file = format!(
            "protocols = [\"ring\", \"arbiter-uniform\", \"raymond\"]\nnodes = 7\nunits = 2\n\
             hold = 0.5\nrho = [0.5, 20.0]\nwarm_up = 20.0\nmeasured = {}\nrepetitions = {}\n",
            pace.pick(100.0, 400.0),
            pace.pick(2, 5)
        );
        let cells = measure(&file)?;
        let mut grid = Grid::new(&["protocol", "rho", "messages per grant"]);
        let of = |name: &str, rho: f64| {
            let is = |cell: &&crate::experiment::Cell| {
                cell.setting.protocol.name() == name && cell.setting.rho == rho
            };
            cells.iter().find(is).and_then(|cell| cell.summary(Metric::MessagesPerCs))
        };
        for cell in &cells {
            let Some(messages) = cell.summary(Metric::MessagesPerCs) else { continue };
            let (name, rho) = (cell.setting.protocol.name(), cell.setting.rho);
            grid.row(&[&name, &rho, &messages.shown(1)]);
        }
        let pair = |rho| of("ring", rho).zip(of("arbiter-uniform", rho));
        let few = |rho| pair(rho).is_some_and(|(ring, quorums)| quorums.is_above(&ring));
        // As stated it would hold at any load; what is true is that it does when there is much.
        let mut busy = Tally::new();
        busy.case(few(0.5), || "rho = 0.5".into());
        let found = Found::corrected_if(
            !few(20.0),
            &busy,
            "It depends on the load: a ring needs fewer messages per grant than uniform quorums \
             where units are always wanted, and more where they are not, since its messages go \
             round all the time. It also heals from the loss of tokens, as it is self-stabilizing.",
        );
        Ok(found.with(grid))
    })())
}

fn five_messages_for_each_member(_: Pace) -> Found {
    let (mut most, mut exact) = (Tally::new(), Tally::new());
    let mut grid =
        Grid::new(&["k", "claims for all k", "claims", "messages", "per claim", "3(k+b)+3kb"]);
    for (units, whole) in [(2, 1), (2, 2), (2, 3), (3, 2), (4, 4)] {
        let worst = worst::play(units, whole);
        let claims = (units + whole) as usize;
        let each = worst.messages as f64 / claims as f64;
        most.case(each <= 5.0, || {
            format!("k={units}, {whole} claims for all: {each:.1} per member")
        });
        exact.case(worst.messages == worst.bound(), || format!("k={units} b={whole}"));
        let shown = format!("{each:.1}");
        grid.row(&[&units, &whole, &claims, &worst.messages, &shown, &worst.bound()]);
    }
    Found::all(&most, "worlds played by hand against the protocol, at most 5 for each member")
        .and(format!("The closed form is reached exactly: {}.", exact.words("worlds")))
        .with(grid)
        .by("quorate-lab sim arbiter-messages")
}

fn raymond_admits_k(pace: Pace) -> Found {
    or_failed((|| {
        let mut cases = Tally::new();
        let mut states = 0;
        let mut commands = Vec::new();
        for words in &[
            "--protocol broadcast --variant raymond --nodes 2 --units 1 --want 1,1",
            "--protocol broadcast --variant raymond --nodes 3 --units 2 --want 1,1,1",
        ][..pace.pick(1, 2)]
        {
            let one = explore(words)?;
            states += one.states;
            cases.case(one.holds(), || format!("{words}: {:?}", one.broken));
            commands.push(one.command);
        }
        let found = Found::all(&cases, "worlds explored: never k+1 inside")
            .and(format!("{states} states; that k are inside at once is reached."));
        Ok(commands.into_iter().fold(found, Found::by))
    })())
}
