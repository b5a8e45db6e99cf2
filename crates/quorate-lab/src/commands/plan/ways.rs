//! The ways that the daemon has to share units, each as its file says it and as the simulator does.

use super::fleet::Fleet;

/// One way.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// What people call it.
    pub(super) name: String,
    /// The protocol's lines in the pool of a file.
    pub(super) options: String,
    /// Whether the file switches the charter on.
    pub(super) charter: bool,
    /// The words of the simulator. A seat that moves is simulated where it rests.
    pub(super) words: String,
    /// What people should know of it.
    pub(super) note: &'static str,
}

/// All that are worth a trial.
pub(super) fn ways(fleet: &Fleet) -> Vec<Way> {
    let mut ways = Vec::new();
    let mut add = |name: &str, options: &str, words: &str, note: &'static str| {
        let (name, options, words) = (name.to_owned(), options.to_owned(), words.to_owned());
        ways.push(Way { name, options, charter: false, words, note });
    };
    let first = fleet.name(0);
    let central = format!("protocol = \"central\"\narbiter = \"{first}\"\n");
    add(&format!("central at {first}"), &central, "central", "one node decides");
    add("central, its seat moves", "protocol = \"central\"\n", "central", MOVES);
    let (least, most) = fleet.claims();
    let holders = fleet.units / least;
    if holders < fleet.units {
        let options =
            format!("protocol = \"arbiter\"\nmode = \"arbiter\"\nmax_holders = {holders}\n");
        let words = format!("arbiter --max-holders {holders} --survive 0");
        add(&format!("arbiter, at most {holders} holders"), &options, &words, "");
    } else {
        add(
            "arbiter, units counted",
            "protocol = \"arbiter\"\nmode = \"arbiter\"\n",
            "arbiter --survive 0",
            "",
        );
        add(
            "arbiter, units counted, then named",
            "protocol = \"arbiter\"\nmode = \"arbiter\"\nnaming = true\n",
            "arbiter --naming --survive 0",
            "",
        );
    }
    if most > 1 && holders == fleet.units {
        add(
            "arbiter, quorums by size of claim",
            "protocol = \"arbiter\"\nmode = \"arbiter\"\nfamily = \"threshold\"\n",
            "arbiter --family threshold --survive 0",
            "",
        );
    }
    for (name, mode, words) in [
        ("arbiter, units as locks", "arbiter\"\nmode = \"named", "arbiter --mode named"),
        ("ticket", "arbiter\"\nmode = \"ticket", "ticket"),
        ("table", "table", "table"),
    ] {
        for (among, lines, flags) in pairs(fleet, name == "table") {
            let options = format!("protocol = \"{mode}\"\n{lines}");
            let words = format!("{words}{flags} --survive 0");
            add(&format!("{name}, {among}"), &options, &words, "");
        }
    }
    let crashes = fleet.losses.nodes.max(if fleet.losses.zone { fleet.zone_max() } else { 0 });
    let broadcast = format!(
        "protocol = \"broadcast\"\nreclaim = \"lease\"\ncrashes_max = {crashes}\nnode_units_max = \
         {most}\n"
    );
    let words =
        format!("broadcast --reclaim lease --crashes-max {crashes} --node-units-max {most}");
    add("broadcast", &broadcast, &words, "");
    add("ring", "protocol = \"ring\"\n", "ring", "");
    ways[1].charter = true;
    ways
}

const MOVES: &str = "rests on the charter, which is experimental; simulated while its seat rests";

/// Quorums any two of which meet: who votes, as options of a file and of the simulator.
fn pairs(fleet: &Fleet, is_table: bool) -> Vec<(String, String, String)> {
    let nodes = fleet.nodes;
    let mut pairs = Vec::new();
    let usual = if is_table { nodes.min(5) } else { nodes };
    pairs.push((format!("majorities of {usual}"), String::new(), String::new()));
    for voters in [3, 5] {
        if voters < usual {
            pairs.push((
                format!("majorities of {voters}"),
                format!("voters = {voters}\n"),
                format!(" --voters {voters}"),
            ));
        }
    }
    // A majority of the zones, and of each a majority of its nodes.
    if fleet.zones > 2 && nodes >= 2 * fleet.zones {
        let majority =
            |parts: Vec<String>| format!("choose({}, {})", parts.len() / 2 + 1, parts.join(", "));
        let of_zone = |zone: u32| {
            let nodes: Vec<String> =
                fleet.of_zone(zone).iter().map(|node| node.0.to_string()).collect();
            if nodes.len() == 1 { nodes.concat() } else { majority(nodes) }
        };
        let family = majority((0..fleet.zones).map(of_zone).collect());
        pairs.push((
            "majorities of most zones".to_owned(),
            format!("family = \"expr:{family}\"\nvoters = {nodes}\n"),
            format!(" --family 'expr:{family}' --voters {nodes}"),
        ));
    }
    pairs
}
