//! What is read, what it means, and what is refused.

use quorate_protocols::table::Table;

use super::*;

const GOOD: &str = r#"
    cluster = "demo"
    epoch = 1
    node = "b"
    data_dir = "data"
    listen = { clients = "127.0.0.1:7420", peers = "127.0.0.1:7520" }
    members = [
        { name = "a", peers = "127.0.0.1:7521" },
        { name = "b", peers = "127.0.0.1:7520" },
    ]
    [[pools]]
    name = "gpu"
    unit_names = ["left", "right"]
    arbiter = "a"
    [[pools]]
    pattern = "ci-*"
    units = 8
    lease = "30s"
    fairness = "backfill:4"
    durable = true
"#;

#[test]
fn what_is_wrong_with_a_file_is_said_without_the_line_that_may_have_a_secret() {
    let name = format!("quorate-config-{}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    for wrong in
        ["admin_token = \"0123456789abcdef", "epoch = 1\nadmin_token == \"0123456789abcdef\""]
    {
        std::fs::write(&path, wrong).unwrap();
        let said = Config::read(&path).unwrap_err().to_string();
        assert!(said.starts_with("TOML parse error at line "), "{said}");
        assert!(said.contains(": ") && !said.contains("0123456789"), "{said}");
        assert!(Config::parse(wrong).unwrap_err().to_string().contains("0123456789"));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_file_is_read_and_understood() {
    let config = Config::parse(GOOD).unwrap();
    assert_eq!((config.name(), config.me), ("b", NodeId(1)));
    assert_eq!(config.pool("gpu").unwrap().units, 2);
    let ci = config.pool("ci-build").unwrap();
    assert_eq!(
        (ci.label().as_str(), ci.units, ci.claim_max, ci.protocol.about.durable),
        ("ci-*", 8, 8, true)
    );
    assert_eq!(ci.promises.overtakes_max, Some(4));
    assert!(config.pool("ci").is_none());
    assert!(config.pool("ci-é").is_none());
    assert_eq!(config.lease_max().as_secs(), 30);
}

#[test]
fn contradictions_are_refused_with_a_clear_message() {
    for (from, to, says) in [
        ("epoch = 1", "epoch = 1\nepok = 2", "unknown field `epok`"),
        ("epoch = 1", "", "missing field `epoch`"),
        ("node = \"b\"", "node = \"c\"", "is not among the members"),
        ("name = \"a\", peers", "name = \"b\", peers", "two members are named \"b\""),
        ("127.0.0.1:7521", "127.0.0.1:7520", "\"a\" and \"b\" have the same address for peers"),
        ("127.0.0.1:7420", "0.0.0.0:7420", "`quorate cert node NAME --address ADDRESS`"),
        ("units = 8", "units = 0", "choose 1 to"),
        ("units = 8", "units = 8\nclaim_min = 9", "claim_min <= claim_max <= 8"),
        ("units = 8", "units = 8\ngrace = \"1s\"", "grace is shorter than the lease"),
        ("\"left\", \"right\"", "\"left\", \"left\"", "two units are named"),
        ("arbiter = \"a\"", "arbiter = \"z\"", "is not a member"),
        ("lease = \"30s\"", "lease = \"30\"", "is not a span of time"),
        ("backfill:4", "backfill", "choose \"fifo\" or \"backfill:N\""),
        ("pattern = \"ci-*\"", "pattern = \"ci\"", "is no name"),
        ("data_dir = \"data\"", "", "data_dir is missing"),
        ("epoch = 1", "epoch = 1\nbootstrap = true", "run `quorate init --config FILE`"),
        ("pattern = \"ci-*\"", "name = \"gpu\"", "two pools are named \"gpu\""),
        ("durable = true", "protocol = \"ring\"", "fairness is an option of arbiter, central"),
        ("durable = true", "hedge = 1", "this pool's protocol is central"),
        ("durable = true", "colour = \"red\"", "unknown field `colour`"),
        ("epoch = 1", "epoch = 1\nsuspect_after = \"1s\"", "choose 2s or more"),
        (
            "epoch = 1",
            "epoch = 1\nlimits = { queue = 0 }",
            "limits.queue = 0: choose 1 to 100000000",
        ),
        (
            "epoch = 1",
            "epoch = 1\nlimits = { clients = 9223372036854775807 }",
            "limits.clients = 9223372036854775807: choose 1 to 1000000",
        ),
        ("\"left\", \"right\"", "\"left\", \"\"", "\"\" is no name of a unit"),
        ("\"left\", \"right\"", "\"left,right\"", "\"left,right\" is no name of a unit"),
        ("durable = true", "protocol = \"raft\"", "choose \"central\", \"arbiter\""),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = Config::parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(says), "{from} -> {to}: {error}");
    }
}

/// The second pool with another protocol and these options.
fn with(options: &str) -> Result<Config, String> {
    let text = GOOD.replace("fairness = \"backfill:4\"\n    durable = true", options);
    assert!(text.contains(options));
    Config::parse(&text).map_err(|error| error.to_string())
}

#[test]
fn every_protocol_has_options_of_its_own() {
    for (options, survives, names_units, claim_max) in [
        ("protocol = \"central\"\ndurable = true", 0, true, 8),
        ("protocol = \"arbiter\"\nhedge = 1\ndurable = true", 0, true, 8),
        (
            "protocol = \"table\"\nsurvive = 0\nfairness = \"backfill:2\"\ndurable = true",
            0,
            true,
            8,
        ),
        ("protocol = \"ring\"\ntimeout = \"2s\"\ngrants_max = 3", 0, true, 8),
        ("protocol = \"broadcast\"\nreclaim = \"lease\"\nprobe = \"1s\"", 0, false, 8),
    ] {
        // Two members: nobody has a majority without the other.
        let options = options.replace("hedge", "survive = 0\nhedge");
        let config = with(&options).unwrap();
        let pool = config.pool("ci-x").unwrap();
        let promises = pool.promises;
        assert_eq!(promises.survives, survives, "{options}");
        assert_eq!((promises.names_units, pool.claim_max), (names_units, claim_max));
    }
    for (options, says) in [
        ("protocol = \"arbiter\"", "survives 0 crashes and 1 are wanted"),
        ("protocol = \"arbiter\"\nmode = \"arbiter\"", "survive 0 accepts what survives no"),
        ("protocol = \"arbiter\"\nmode = \"auto\"", "survives 0 crashes and 1 are wanted"),
        ("protocol = \"arbiter\"\nmode = \"many\"", "\"named\", \"arbiter\", \"ticket\" or"),
        ("protocol = \"arbiter\"\nfairness = \"fifo\"\nsurvive = 0", "beside"),
        ("protocol = \"arbiter\"\nmode = \"ticket\"\ndurable = true\nsurvive = 0", "beside"),
        ("protocol = \"arbiter\"\nmode = \"ticket\"\nhedge = 1\nsurvive = 0", "beside"),
        ("protocol = \"arbiter\"\nspares = 1\nsurvive = 0", "beside"),
        ("protocol = \"arbiter\"\nmax_holders = 1", "only where arbiters count"),
        ("protocol = \"arbiter\"\nvoters = 3", "choose 1 to 2"),
        ("protocol = \"arbiter\"\nfamily = \"grit\"", "family grit: "),
        ("protocol = \"table\"", "survives 0 crashes and 1 are wanted"),
        ("protocol = \"table\"\nfamily = \"expr:any(0, 1)\"", "family expr:any(0, 1): "),
        ("protocol = \"table\"\nsurvive = 0\nmode = \"named\"", "mode is an option of arbiter"),
        ("protocol = \"table\"\nsurvive = 0\nmax_holders = 1", "max_holders is an option of"),
        ("protocol = \"arbiter\"\nfamily = \"expr:any(0, 1)\"", "no node is in all of"),
        ("protocol = \"broadcast\"\ncrashes_max = 1", "choose 0 to 0"),
        ("protocol = \"broadcast\"\nreclaim = \"trust-rp\"", "for simulations"),
        ("protocol = \"broadcast\"\nreclaim = \"soon\"", "\"lease\" or \"fenced\""),
        ("protocol = \"broadcast\"\nprobe = \"29s\"", "half the lease"),
        ("protocol = \"broadcast\"\nprobe = \"0s\"", "probe = \"0s\": choose 10ms or more"),
        ("protocol = \"broadcast\"\ndurable = true", "durable is an option of arbiter, central"),
        ("protocol = \"broadcast\"\nnode_units_max = 2\nclaim_max = 3", "<= 2 must hold"),
        ("protocol = \"ring\"\ntimeout = 5", "timeout: invalid type"),
    ] {
        let error = with(options).unwrap_err();
        assert!(error.contains(says), "{options}: {error}");
    }
    let names = "protocol = \"broadcast\"\narbiter = \"a\"";
    let error = Config::parse(&GOOD.replacen("arbiter = \"a\"", names, 1)).unwrap_err();
    assert!(error.to_string().contains("arbiter is an option of central"), "{error}");
    let names = "protocol = \"broadcast\"";
    let error = Config::parse(&GOOD.replacen("arbiter = \"a\"", names, 1)).unwrap_err();
    assert!(error.to_string().contains("give units, not unit_names"), "{error}");
}

/// Five members, any of whose names the pool may use.
fn of_five(protocol: &str, pool: &str) -> Result<Config, String> {
    let members = (0..5).map(|n| format!("{{ name = \"m{n}\", peers = \"127.0.0.1:{n}\" }}"));
    let members = members.collect::<Vec<_>>().join(", ");
    let text = format!(
        "cluster = \"c\"\nepoch = 1\nnode = \"m0\"\ndata_dir = \"d\"\nmembers = [{members}]\n\
         listen = {{ clients = \"127.0.0.1:9\", peers = \"127.0.0.1:8\" }}\n\
         [[pools]]\nname = \"p\"\nprotocol = \"{protocol}\"\n{pool}"
    );
    Config::parse(&text).map_err(|error| error.to_string())
}

/// Where nobody is counted out, only what the dead are taken to use matters; leases end when more
/// than `crashes_max` are away, whatever is left.
#[test]
fn what_a_broadcasting_pool_survives_depends_on_how_it_reclaims() {
    for (options, survives) in [
        ("reclaim = \"never\"", 3),
        ("reclaim = \"fenced\"", 3),
        ("reclaim = \"lease\"", 2),
        ("reclaim = \"lease\"\ncrashes_max = 1\nnode_units_max = 1", 1),
        ("reclaim = \"lease\"\nnode_units_max = 2", 1),
        ("reclaim = \"never\"\nnode_units_max = 2", 1),
    ] {
        let config = of_five("broadcast", &format!("units = 4\n{options}")).unwrap();
        assert_eq!(config.pool("p").unwrap().promises.survives, survives, "{options}");
    }
}

#[test]
fn quorums_are_chosen_by_mode_family_and_what_must_be_survived() {
    for (pool, protocol, says) in [
        ("units = 9", "arbiter", "named, majority: quorums of 3 of 5, 2 crashes survived"),
        ("units = 9\nvoters = 3", "arbiter", "named, majority: quorums of 2 of 3, 1 crash"),
        ("units = 4\nfamily = \"auto\"", "arbiter", "named, uniform: quorums of 3 of 5, 2"),
        ("units = 4\nfamily = \"wall\"\nsurvive = 0", "arbiter", "named, wall"),
        (
            "units = 2\nfamily = \"expr:choose(3, 0, 1, 2, 3, 4)\"",
            "arbiter",
            "quorums of 3 of 5, 2 crashes survived",
        ),
        (
            "units = 4\nmode = \"arbiter\"\nsurvive = 0",
            "arbiter",
            "arbiter, uniform: quorums of 5 of 5, 0 crashes survived",
        ),
        (
            "units = 4\nmode = \"arbiter\"\nmax_holders = 1",
            "arbiter",
            "arbiter, uniform: quorums of 3 of 5, 2 crashes survived",
        ),
        (
            "units = 3\nmode = \"arbiter\"\nfamily = \"threshold\"",
            "arbiter",
            "arbiter, threshold: quorums of 3 to 4 of 5, 1 crash survived",
        ),
        (
            "unit_names = [\"a\", \"b\"]\nmode = \"arbiter\"\nnaming = true",
            "arbiter",
            "arbiter with naming, uniform: quorums of 4 of 5, 1 crash survived",
        ),
        ("units = 8\nmode = \"ticket\"", "ticket", "ticket, majority: quorums of 3 of 5, 2"),
        ("units = 8\nmode = \"ticket\"", "ticket", "load 1.000, 25.0 messages per quiet grant"),
        (
            "units = 8\nmode = \"ticket\"\nspares = 0",
            "ticket",
            "load 0.600, 15.0 messages per quiet grant",
        ),
        ("units = 2\nmode = \"auto\"", "arbiter", "arbiter, uniform: quorums of 3 of 4, 1"),
        ("units = 2\nmode = \"auto\"\nsurvive = 2", "ticket", "quorums of 3 of 5, 2 crashes"),
        ("units = 8", "table", "table, majority: quorums of 3 of 5, 2 crashes survived"),
        ("units = 8\nfamily = \"wall\"\nsurvive = 0\nvoters = 4", "table", "table, wall"),
    ] {
        let config = of_five(if protocol == "table" { protocol } else { "arbiter" }, pool).unwrap();
        let pool = &config.pools[0];
        let worth = pool.quorums.as_ref().unwrap();
        assert!(worth.to_string().contains(says), "{worth}");
        assert_eq!(pool.protocol.name(), protocol, "{worth}");
        assert_eq!(pool.promises.survives as usize, worth.summary.survives);
    }
    let error = of_five("arbiter", "units = 4\nmode = \"arbiter\"").unwrap_err();
    assert!(error.contains("any family for this needs 6 nodes"), "{error}");
    for mode in ["named", "ticket", "auto"] {
        let pool = format!("units = 2\nmode = \"{mode}\"\nnaming = true");
        let error = of_five("arbiter", &pool).unwrap_err();
        assert!(error.contains("naming is for mode arbiter"), "{error}");
    }
}

#[test]
fn pools_that_one_crash_stops_are_named_with_what_would_help() {
    let told = of_five("central", "units = 2").unwrap().fragile();
    assert!(told[0].starts_with("pool p: central grants nothing while a node"), "{told:?}");
    assert!(told[0].contains("`protocol = \"arbiter\"` or `\"table\"`"), "{told:?}");
    assert_eq!(of_five("arbiter", "units = 2").unwrap().fragile(), [""; 0]);
    // Where the charter could say who decides, that is the first remedy; what is on one disk stays.
    assert!(told[0].contains("lets others decide"), "{told:?}");
    let durable = of_five("central", "units = 2\ndurable = true").unwrap().fragile();
    assert!(!durable[0].contains("others decide"), "{durable:?}");
    let charter = "units = 2\n[charter]\nenabled = true";
    assert_eq!(of_five("central", charter).unwrap().fragile(), [""; 0]);
    let pinned = of_five("central", &format!("arbiter = \"m0\"\n{charter}")).unwrap().fragile();
    assert!(pinned[0].contains("without `arbiter` others decide"), "{pinned:?}");
}

#[test]
fn leases_too_short_for_grants_to_move_in_time_are_warned_of() {
    for (pool, warned) in [
        ("units = 2", false),
        ("units = 2\nlease = \"9s\"", false),
        ("units = 2\nlease = \"8s\"", true),
        ("units = 2\nlease = \"8s\"\nvoters = 1\nsurvive = 0", false),
        ("units = 2\nlease = \"8s\"\nmode = \"ticket\"", false),
        ("units = 2\nlease = \"8s\"\nmode = \"ticket\"\nspares = 1", true),
    ] {
        let warnings = of_five("arbiter", pool).unwrap().warnings();
        assert_eq!(warnings.len(), usize::from(warned), "{pool}: {warnings:?}");
        assert!(warnings.iter().all(|text| text.contains("pool p: a lease of 8s is shorter")));
    }
}

#[test]
fn members_that_disagree_about_a_protocol_have_different_digests() {
    let all = [
        "protocol = \"central\"",
        "protocol = \"ring\"",
        "protocol = \"broadcast\"",
        "protocol = \"broadcast\"\nreclaim = \"lease\"",
        "protocol = \"broadcast\"\nreclaim = \"fenced\"",
        "protocol = \"broadcast\"\nnode_units_max = 3",
        "protocol = \"arbiter\"\nsurvive = 0",
        "protocol = \"arbiter\"\nsurvive = 0\nmode = \"arbiter\"",
        "protocol = \"arbiter\"\nsurvive = 0\nmode = \"arbiter\"\nmax_holders = 2",
        "protocol = \"arbiter\"\nsurvive = 0\nmode = \"arbiter\"\nnaming = true",
        "protocol = \"arbiter\"\nsurvive = 0\nmode = \"arbiter\"\nfamily = \"threshold\"",
        "protocol = \"arbiter\"\nsurvive = 0\nmode = \"ticket\"",
        "protocol = \"arbiter\"\nsurvive = 0\nmode = \"ticket\"\nvoters = 1",
        "protocol = \"arbiter\"\nsurvive = 0\nfamily = \"expr:all(0, any(0, 1))\"",
        "protocol = \"table\"\nsurvive = 0",
        "protocol = \"table\"\nsurvive = 0\nvoters = 1",
        "protocol = \"table\"\nsurvive = 0\nfairness = \"backfill:2\"",
        "protocol = \"table\"\nsurvive = 0\ndurable = true",
    ];
    let digests: std::collections::BTreeSet<u64> =
        all.iter().map(|options| with(options).unwrap().digest).collect();
    assert_eq!(digests.len(), all.len());
}

const KINDS: &str = "units = [{ name = \"g0\", labels = { gpu = \"h100\", zone = \"eu\" } }, \
                     { name = \"g1\", labels = { gpu = \"a100\" } }, { name = \"g2\" }]";

#[test]
fn units_have_names_and_labels() {
    let kinds = |from: &str, to: &str| {
        let units = KINDS.replacen(from, to, 1);
        Config::parse(&GOOD.replace("unit_names = [\"left\", \"right\"]", &units))
    };
    let config = kinds("", "").unwrap();
    let def = config.pool("gpu").unwrap();
    assert_eq!((def.units, def.unit_names.join(" ")), (3, "g0 g1 g2".to_owned()));
    let h100 = def.labels().unwrap().select(&"gpu=h100".parse().unwrap());
    assert_eq!(*h100, [quorate_core::Unit(0)]);
    assert_eq!(config.pool("ci-1").unwrap().labels(), None);
    let of_a_table = format!("{KINDS}\nreserved = [{{ units = [\"g2\"], members = [\"a\"] }}]");
    let text = GOOD.replace("unit_names = [\"left\", \"right\"]", &of_a_table);
    let text = text.replacen("arbiter = \"a\"", "protocol = \"table\"\nsurvive = 0", 1);
    let tabled = Config::parse(&text).unwrap();
    let pool = tabled.pool("gpu").unwrap().protocol.pool::<Table>("gpu", 2).unwrap();
    assert_eq!(pool.goods.labels.as_ref(), def.labels());
    let eligible = pool.goods.eligible.as_ref().unwrap();
    assert_eq!(eligible.iter().map(|units| units.len()).collect::<Vec<_>>(), [3, 2]);
    for (from, to) in [("h100", "b200"), ("zone", "site"), (", zone = \"eu\"", "")] {
        assert_ne!(config.digest, kinds(from, to).unwrap().digest, "{from}");
    }
    for (from, to, says) in [
        ("h100", "h 100", "unit \"g0\": \"h 100\" is no label"),
        ("h100", "", "unit \"g0\": \"\" is no label"),
        ("g1", "g0", "two units are named \"g0\""),
        ("labels", "label", "write units = 4 or units = [{ name"),
        ("]", "]\nprotocol = \"ring\"", "ring cannot choose among units that differ"),
        ("]", "]\nunit_names = [\"a\"]", "give either units or unit_names"),
    ] {
        let error = kinds(from, to).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
}

#[test]
fn reserved_units_are_known_by_labels_or_names() {
    let with = |rules: &str| {
        let units = format!("{KINDS}\nreserved = [{rules}]");
        Config::parse(&GOOD.replace("unit_names = [\"left\", \"right\"]", &units))
    };
    let config = with(
        "{ where = { gpu = \"h100\" }, clients = [\"train-*\"] }, \
         { units = [\"g2\"], members = [\"a\"] }, \
         { units = [\"g2\"], members = [\"b\"], clients = [\"x\"] }",
    )
    .unwrap();
    let def = config.pool("gpu").unwrap();
    let allowed = |node, client| {
        let all = (0..3).map(quorate_core::Unit).collect();
        let units = def.allowed(NodeId(node), client).unwrap_or(all);
        units.iter().map(|unit| unit.0).collect::<Vec<_>>()
    };
    assert_eq!(allowed(0, "train-1"), [0, 1, 2]);
    assert_eq!(allowed(0, "x"), [1, 2]);
    assert_eq!(allowed(1, "x"), [1, 2]);
    assert_eq!(allowed(1, "train-1"), [0, 1]);
    assert_eq!(allowed(1, "train"), [1]);
    assert_ne!(config.digest, with("").unwrap().digest);
    for (rule, says) in [
        ("{ clients = [\"x\"] }", "say which units"),
        ("{ units = [\"g0\"] }", "say for whom"),
        ("{ units = [\"g9\"], clients = [\"x\"] }", "no unit is named \"g9\""),
        ("{ units = [\"g0\"], members = [\"z\"] }", "\"z\" is not a member"),
        ("{ where = { gpu = \"b200\" }, members = [\"a\"] }", "no unit has these labels"),
    ] {
        let error = with(rule).unwrap_err().to_string();
        assert!(error.contains(says), "{rule}: {error}");
    }
    let plain = GOOD.replace("units = 8", "units = 8\nreserved = [{ members = [\"a\"] }]");
    let error = Config::parse(&plain).unwrap_err().to_string();
    assert!(error.contains("only units with names and labels"), "{error}");
}

#[test]
fn members_that_disagree_about_a_pool_have_different_digests() {
    let digest = |text: &str| Config::parse(text).unwrap().digest;
    assert_eq!(digest(GOOD), digest(&GOOD.replace("node = \"b\"", "node = \"a\"")));
    assert_eq!(digest(GOOD), digest(&GOOD.replace("7420", "7400")));
    for (from, to) in [("units = 8", "units = 9"), ("30s", "31s"), ("true", "false")] {
        assert_ne!(digest(GOOD), digest(&GOOD.replace(from, to)), "{from}");
    }
}

#[test]
fn other_machines_take_certificates_and_tokens() {
    let far = GOOD.replace("127.0.0.1", "10.0.0.1");
    let tls = "tls = { ca = \"ca.crt\", cert = \"b.crt\", key = \"b.key\" }\n";
    let says = |text: &str| Config::parse(text).unwrap_err().to_string();
    assert!(says(&far).contains("`quorate cert new-ca CLUSTER`"), "{}", says(&far));
    let unguarded = says(&format!("{tls}{far}"));
    assert!(unguarded.contains("`quorate token new`"), "{unguarded}");
    let fine = Config::parse(&format!("{tls}rights = {{}}\n{far}")).unwrap();
    assert_eq!(fine.tls.as_ref().map(|tls| tls.key.to_str()), Some(Some("b.key")));
    let missing = fine.keys().unwrap_err().to_string();
    assert!(missing.contains("cannot read ca.crt"), "{missing}");
    assert!(Config::parse(GOOD).unwrap().keys().unwrap().is_none());
}

#[test]
fn peers_are_called_from_where_the_file_says() {
    let from = |source: &str| {
        let listen = format!("7520\", source = {source:?} }}");
        Config::parse(&GOOD.replacen("7520\" }", &listen, 1))
    };
    assert_eq!(Config::parse(GOOD).unwrap().source, None);
    assert_eq!(from("127.0.0.9").unwrap().source, Some("127.0.0.9".parse().unwrap()));
    let digest = |config: Config| config.digest;
    assert_eq!(from("127.0.0.9").map(digest).unwrap(), Config::parse(GOOD).unwrap().digest);
    for (source, says) in [
        ("10.0.0.1", "over loopback addresses only"),
        ("::1", "cannot be called from an address of the other kind"),
        ("here", "invalid IP address"),
    ] {
        let error = from(source).unwrap_err().to_string();
        assert!(error.contains(says), "{source}: {error}");
    }
}

/// Holds without a lease are refused where they could be lost, with the reason.
#[test]
fn a_pool_that_is_not_durable_enough_has_no_holds_without_a_lease() {
    let table = "protocol = \"table\"\nstanding = true\n";
    let five: String = ["c", "d", "e"]
        .iter()
        .enumerate()
        .map(|(at, name)| format!("{{ name = \"{name}\", peers = \"127.0.0.1:753{at}\" }},"))
        .collect();
    let of_five = |options: &str| {
        let text = GOOD.replace("    ]\n    [[pools]]", &format!("{five}]\n    [[pools]]"));
        assert_ne!(text, GOOD);
        let text = text.replace("fairness = \"backfill:4\"\n    durable = true", options);
        Config::parse(&text).map_err(|error| error.to_string())
    };
    let good = of_five(&format!("{table}durable = true\noverdue = \"2h\"")).unwrap();
    let pool = good.pool("ci-x").unwrap();
    assert_eq!((pool.standing, pool.overdue.unwrap().as_secs()), (true, 7200));
    for (options, says) in [
        (table.to_owned(), "say durable = true"),
        ("standing = true\ndurable = true".into(), "central has no holds without a lease"),
        ("standing = true".into(), "its books are on one disk, or on none"),
        ("protocol = \"arbiter\"\nstanding = true\ndurable = true".into(), "arbiter has no holds"),
        ("protocol = \"ring\"\nstanding = true".into(), "known to that node alone"),
        (
            format!("{table}durable = true\nfamily = \"singleton\"\nsurvive = 0"),
            "these quorums outlive any 0",
        ),
        (
            format!("{table}durable = true\nfamily = \"weighted:3,1,1,1,1\""),
            "must outlive any 2 of 5 members, and these quorums outlive any 1",
        ),
        ("overdue = \"1h\"".into(), "say standing = true"),
    ] {
        let error = of_five(&options).expect_err(&options);
        assert!(error.contains(says), "{options}: {error}");
    }
    for wrong in ["reboot", "a-*-*", "*/x"] {
        let text = GOOD.replace("epoch = 1", &format!("epoch = 1\ngateways.fleetlock = {wrong:?}"));
        let error = Config::parse(&text).unwrap_err().to_string();
        assert!(error.contains("with one *"), "{wrong}: {error}");
    }
}

#[test]
fn members_may_have_names_where_they_are_known_by_certificates() {
    let named = GOOD.replace("127.0.0.1:7521", "b.example.org:7521");
    assert_ne!(named, GOOD);
    let error = Config::parse(&named).unwrap_err().to_string();
    assert!(error.contains("b.example.org:7521"), "a name may lead anywhere: {error}");
    let tls = "tls = { ca = \"ca.crt\", cert = \"a.crt\", key = \"a.key\" }\n";
    let config = Config::parse(&format!("{tls}{named}")).unwrap();
    assert_eq!(config.members[0].peers.to_string(), "b.example.org:7521");
    assert_eq!(config.digest, Config::parse(GOOD).unwrap().digest, "where it is may change");
    let wrong = GOOD.replace("127.0.0.1:7521", "127.0.0.1");
    let error = Config::parse(&wrong).unwrap_err().to_string();
    assert!(error.contains("write ADDRESS:PORT or NAME:PORT"), "{error}");
}

/// packaging/kustomize, which names pods and their service elsewhere.
#[test]
fn the_configurations_for_kubernetes_are_good_and_differ_in_what_they_must() {
    let files = [
        include_str!("../../../../packaging/kustomize/nodes/quorate-0.toml"),
        include_str!("../../../../packaging/kustomize/nodes/quorate-1.toml"),
        include_str!("../../../../packaging/kustomize/nodes/quorate-2.toml"),
    ];
    let set = include_str!("../../../../packaging/kustomize/statefulset.yaml");
    let set: Vec<&str> = set.lines().map(str::trim).collect();
    for line in ["replicas: 3", "serviceName: quorate-peers", "name: quorate"] {
        assert!(set.contains(&line), "{line}");
    }
    let first = Config::parse(files[0]).unwrap();
    for (place, text) in files.into_iter().enumerate() {
        let config = Config::parse(text).unwrap();
        assert_eq!(config.name(), format!("quorate-{place}"));
        let there = format!("quorate-{place}.quorate-peers:7520");
        assert_eq!(config.members[place].peers.to_string(), there);
        assert_eq!(config.digest, first.digest);
        assert!(config.guarded.now().is_some(), "nothing is open");
        let changed = files[0].lines().zip(text.lines()).filter(|(one, other)| one != other);
        assert_eq!(changed.count(), if place == 0 { 0 } else { 4 }, "comment, node, cert, key");
    }
}
