//! `quorate-lab sim` from outside: what it prints, and how it exits.

use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};

fn quorate(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-lab"));
    command.args(line.split_whitespace()).output().expect("the command runs")
}

fn stdout(line: &str) -> String {
    let output = quorate(line);
    assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_run_prints_a_table_or_json() {
    let table = stdout("sim run --nodes 20 --units 5 --duration 1s");
    for row in ["verdict      clean", "messages", "waiting", "utilization", "fairness", "steps"] {
        assert!(table.contains(row), "{table}");
    }
    let json = stdout("sim run --nodes 4 --units 2 --want 1,2 --grants 200 --json");
    let json: serde_json::Value = serde_json::from_str(&json).expect("json");
    assert_eq!(json["verdict"], "clean");
    assert!(json["grants"].as_u64().unwrap() >= 200);
    assert!(json["messages"]["request"].as_u64().unwrap() > 0);
}

/// How fast this machine is, is no part of what a seed means.
#[test]
fn the_same_seed_prints_the_same_bytes_unless_speed_is_asked_for() {
    for line in [
        "sim run --nodes 4 --units 2 --grants 200",
        "sim run --nodes 4 --units 2 --grants 200 --json",
        "sim seeds --count 2 --faults crashes --json",
    ] {
        assert_eq!(stdout(line), stdout(line), "{line}");
    }
    for line in ["sim run --grants 20", "sim seeds --count 1 --faults none"] {
        let json = stdout(&format!("{line} --json --speed"));
        let json: serde_json::Value = serde_json::from_str(&json).expect("json");
        assert!(json["steps_per_second"].as_f64().unwrap() > 0.0, "{line}: {json}");
        assert!(json["wall_seconds"].as_f64().unwrap() > 0.0, "{line}: {json}");
    }
}

/// One engine: what a sweep measures is what a single run with the same seed measures.
#[test]
fn a_run_and_a_sweep_give_the_same_numbers() {
    let folder = std::env::temp_dir().join(format!("quorate-engine-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let protocols = ["central", "arbiter --family uniform --survive 0", "broadcast", "ring"];
    let file = folder.join("one.toml");
    let text = format!(
        "protocols = {protocols:?}\nnodes = 7\nunits = 3\nwant = \"1,2\"\nlatency = 0.003\n\
         latency_spread = 0.5\nwarm_up = 0.5\nmeasured = 1.5\nrepetitions = 1\nseed = 9"
    );
    std::fs::write(&file, text).unwrap();
    let out = folder.join("out");
    stdout(&format!("sim sweep {} --out {}", file.display(), out.display()));
    let results = std::fs::read_to_string(out.join("results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    for (protocol, cell) in protocols.iter().zip(results["cells"].as_array().unwrap()) {
        let run = stdout(&format!(
            "sim run --protocol {protocol} --nodes 7 --units 3 --want 1,2 --seed 9 --json \
             --delay uniform:1.5ms..4.5ms --warm-up 500ms --duration 2s"
        ));
        let run: serde_json::Value = serde_json::from_str(&run).unwrap();
        let metrics = run["metrics"].as_object().unwrap();
        assert!(metrics.len() >= 15, "{metrics:?}");
        for (name, value) in metrics {
            assert_eq!(cell[name]["mean"], *value, "{protocol}: {name}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What becomes of a command whose output nobody reads.
fn unread(line: &str) -> Output {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-lab"));
    let command = command.args(line.split_whitespace()).stdout(writer).stderr(Stdio::piped());
    command.output().expect("the command runs")
}

/// A reader that has seen enough (`quorate ... | head`) is no reason to panic, nor for another
/// exit code.
#[test]
fn nobody_has_to_read_to_the_end() {
    for line in ["sim seeds --count 1 --faults none", "sim arbiter-messages --grants 1"] {
        let output = unread(line);
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(0), "{line}: {error}");
        assert!(!error.contains("panicked"), "{line}: {error}");
    }
}

/// Legitimate is what all nodes make together, so that nobody may stay away from a pool that is not
/// yet: two nodes did here, and the others were blamed.
#[test]
fn a_corrupted_ring_waits_for_its_nodes_before_it_is_judged() {
    let line = "sim run --protocol ring --swarm --seed 0x40 --faults everything --corrupt";
    let output = quorate(line);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// Its root has less patience than a traversal takes, and took turns with itself for ever.
#[test]
fn a_corrupted_ring_of_one_node_serves_a_claim_for_all_units() {
    let line = "sim run --protocol ring --swarm --seed 0x351 --faults none --corrupt";
    let output = quorate(line);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// What claims that wait for each other have gathered is not lost.
#[test]
fn a_deadlock_is_reported_as_claims_that_are_not_served() {
    let file = std::env::temp_dir().join(format!("quorate-structure-{}.json", std::process::id()));
    let structure = r#"{"units": ["r1", "r2"],
        "alpha": {"u1": ["r1", "r2"], "u2": ["r1", "r2"], "u3": ["r1"]}}"#;
    std::fs::write(&file, structure).expect("a file");
    let line = format!("sim run --protocol sharing --structure {} --nodes 3", file.display());
    for strict in ["", " --strict"] {
        let output = quorate(&format!("{line}{strict}"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let table = String::from_utf8(output.stdout).expect("text");
        assert!(table.contains("BROKEN everyone served: 3 still waiting"), "{table}");
    }
    for output in ["", " --json", " --trace"] {
        let output = unread(&format!("{line}{output}"));
        assert_eq!(output.status.code(), Some(1), "it is broken, read or not: {output:?}");
    }
    std::fs::remove_file(&file).expect("it was written");
}

/// Three messages for a remote claim, none for one of the arbiter's own node (central's promise).
#[test]
fn a_quiet_central_pool_costs_three_messages_for_each_remote_grant() {
    let json = stdout("sim run --nodes 1 --units 2 --duration 1s --json");
    let alone: serde_json::Value = serde_json::from_str(&json).expect("json");
    assert_eq!(alone["messages_per_grant"], 0.0);
    let json = stdout("sim run --nodes 4 --units 4 --duration 3s --json");
    let four: serde_json::Value = serde_json::from_str(&json).expect("json");
    let cost = four["messages_per_grant"].as_f64().unwrap();
    assert!((2.0..2.5).contains(&cost), "three quarters of the claims are remote: {cost}");
}

#[test]
fn a_trace_is_the_same_again_to_the_byte() {
    let line = "sim run --swarm --seed 0x5eed --faults everything --trace";
    let trace = stdout(line);
    assert!(trace.lines().count() > 100);
    assert!(trace.contains("# time, seconds"));
    assert!(trace == stdout(line));
    let start = stdout("sim run --swarm --seed 0x5eed --faults everything --trace --until 1ms");
    assert!(trace.starts_with(&start), "a replay is the beginning of the same run");
}

/// The page's data is checked here, its behaviour in a browser (tests/browser).
#[test]
fn a_run_becomes_a_page_that_stands_alone() {
    let file = std::env::temp_dir().join(format!("quorate-replay-{}.html", std::process::id()));
    let path = file.to_str().unwrap();
    let line = "sim run --nodes 4 --units 3 --want 1,2 --faults crashes --duration 3s \
                --lease 100ms --retry 20ms";
    stdout(&format!("{line} --html {path}"));
    let page = std::fs::read_to_string(&file).unwrap();
    let (_, film) = page.split_once("id=\"film\">").expect("the film is inside");
    let (film, _) = film.split_once("</script>").expect("it ends");
    let film: serde_json::Value = serde_json::from_str(film).expect("json");
    let changes = |what: &str| {
        let frames = film["frames"].as_array().unwrap().iter();
        frames.flat_map(|f| f[3].as_array().unwrap()).filter(|c| c[0] == what).count()
    };
    assert!(changes("g") > 100 && changes("c") >= changes("g"));
    assert_eq!(changes("x"), changes("c"), "whoever claimed is gone at the end");
    assert!(changes("n") > 0, "nodes crash");
    assert!(changes("f") > 0, "the seat says that it decides");
    let flights = film["flights"].as_array().unwrap();
    assert!(flights.iter().all(|f| f[2].as_u64() <= f[3].as_u64()), "nothing arrives early");

    let output = quorate("sim run --nodes 60 --units 20 --duration 10s --html /dev/null");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("more did not fit"), "{said}");
    let output = quorate(&format!("sim run --nodes 65 --html {path}"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn files_are_written() {
    let folder = std::env::temp_dir().join(format!("quorate-sim-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (csv, svg) = (folder.join("pool.csv"), folder.join("pool.svg"));
    stdout(&format!(
        "sim run --duration 500ms --csv {} --svg {}",
        csv.to_str().unwrap(),
        svg.to_str().unwrap()
    ));
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("time_s,units_in_use,claims_waiting\n0."), "{csv}");
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("Units in use") && svg.contains("Waiting time"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn seeds_are_clean_and_say_what_they_did() {
    let table = stdout("sim seeds --count 3");
    assert!(table.contains("everything"), "{table}");
    let json = stdout("sim seeds --count 2 --faults crashes --json");
    let json: serde_json::Value = serde_json::from_str(&json).expect("json");
    assert_eq!(json["profiles"][0]["seeds"], 2);
    assert_eq!(json["breaches"].as_array().unwrap().len(), 0);
}

#[test]
fn seeds_that_begin_in_any_state_are_the_runs_that_they_say() {
    let seeds = "sim seeds --protocol ring --corrupt --count 1 --faults crashes --json";
    let seeds: serde_json::Value = serde_json::from_str(&stdout(seeds)).expect("JSON");
    assert_eq!(seeds["profiles"][0]["broken"], 0, "{seeds}");
    let run = "sim run --protocol ring --corrupt --swarm --seed 0x1 --faults crashes --json";
    let run: serde_json::Value = serde_json::from_str(&stdout(run)).expect("JSON");
    assert_eq!(run["verdict"], "clean", "{run}");
    assert!(run["legitimate_at_seconds"].is_f64(), "{run}");
    for number in ["grants", "crashes"] {
        assert_eq!(run[number], seeds["profiles"][0][number], "{run} {seeds}");
    }
    assert_eq!(run["steps"], seeds["steps"], "{run} {seeds}");
}

/// Seed 37 draws two nodes, which survive no crash by voting.
#[test]
fn seeds_with_a_chosen_mode_play_pools_of_any_size() {
    for chosen in ["arbiter --mode named", "ticket --voters 2", "table --voters 2"] {
        let seeds = format!("sim seeds --protocol {chosen} --first 37 --count 1 --faults crashes");
        stdout(&seeds);
    }
}

/// Nothing but the number of nodes is said: the rest must suit it.
#[test]
fn a_large_ring_is_served_and_costs_the_same_for_each_node() {
    let bytes = [4_000, 40_000].map(|nodes| {
        let run = stdout(&format!("sim run --protocol ring --nodes {nodes} --json"));
        let run: serde_json::Value = serde_json::from_str(&run).expect("JSON");
        assert_eq!(run["verdict"], "clean", "{run}");
        assert!(run["grants"].as_u64() > Some(1_000), "{run}");
        run["memory"]["bytes_per_node"].as_f64().expect("a ring counts its bytes")
    });
    assert!(bytes[1] < 400.0 && bytes[1] <= bytes[0], "{bytes:?}");
}

#[test]
fn a_mistake_gets_one_clear_line_and_exit_code_2() {
    for (line, words) in [
        ("sim run --units 2 --want 3", "3 units asked of a pool of 2"),
        ("sim run --nodes 0", "choose 1 to"),
        ("sim run --think soon", "'soon' is no duration"),
        ("sim run --delay gamma:1ms", "no model 'gamma'"),
        ("sim run --faults bad", "no fault profile 'bad': choose none, crashes"),
        ("sim run --protocol paxos", "invalid value 'paxos'"),
        ("sim run --swarm --nodes 5", "--swarm draws everything from the seed"),
        ("sim run --seed xyz", "'xyz' is no seed"),
        ("sim run --fairness lifo", "choose fifo or backfill:B"),
        ("sim run --csv /nowhere/at/all.csv --duration 10ms", "writing /nowhere/at/all.csv"),
        ("sim seeds", "--count"),
        ("sim seeds --count 1 --faults bad", "or all"),
        ("sim seeds --count 1 --corrupt", "central does not heal from any state"),
        ("sim seeds --minutes 0", "--minutes must be above 0"),
        // Nothing to do, and no time to pass.
        ("sim run --grants 0", "--grants must be at least 1"),
        ("sim run --duration 0", "--duration must be above 0"),
        ("sim run --rate 1e30", "at most 1e9"),
        ("sim run --think 0 --hold 0", "no time would pass"),
        ("sim run --lease 2ms", "--lease 2ms: with this --delay choose at least 3ms"),
        ("sim run --retry 0.5us", "choose at least 1us"),
        ("sim run --protocol ring --delay 0", "a message must take some time"),
        ("sim ring-stabilization --starts 0", "--starts must be at least 1"),
        ("sim seeds --minutes 1e-12", "no run was over within"),
        ("sim figures", "choose timer-free or compare"),
        ("sim figures timer-free --latency 100", "choose 0.001 to 5 seconds"),
        ("bench load --clients 0", "--clients must be at least 1"),
        ("bench load --seconds 0", "--seconds must be at least 1"),
        ("bench load --nodes 0", "--nodes must be at least 1"),
        ("bench allocator --rounds 0", "--rounds must be at least 1"),
    ] {
        let output = quorate(line);
        let complaint = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{line}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{line}: {complaint}");
        assert!(complaint.contains(words), "{line}: {complaint}");
    }
}

#[test]
fn help_has_examples() {
    for line in ["sim run --help", "sim seeds --help"] {
        assert!(stdout(line).contains("Examples:"), "{line}");
    }
}

/// What a grant costs where quorums decide: three messages per arbiter but oneself in a quiet pool,
/// three per arbiter at most in a saturated one, and the worst case of one arbiter to the message.
#[test]
fn arbiter_messages_are_what_theory_says() {
    let file = std::env::temp_dir().join(format!("quorate-messages-{}.svg", std::process::id()));
    let line = format!("sim arbiter-messages --grants 300 --json --svg {}", file.display());
    let json: serde_json::Value = serde_json::from_str(&stdout(&line)).expect("json");
    let rows = json["rows"].as_array().unwrap();
    let svg = std::fs::read_to_string(&file).expect("a picture");
    std::fs::remove_file(&file).expect("it was there");
    for row in rows {
        let name = row["name"].as_str().unwrap();
        assert!(svg.contains(name), "{name}");
        let points = row["points"].as_array().unwrap();
        let cost = |place: usize| points[place]["messages_per_grant"].as_f64().unwrap();
        let last = points.len() - 1;
        if let (Some(quorum), Some(bound)) = (row["quorum"].as_f64(), row["quiet_bound"].as_f64()) {
            let per_member = bound / quorum;
            // The last grants are not given back when the run ends.
            let quiet = 0.99 * per_member * (quorum - 1.0)..=bound;
            assert!(quiet.contains(&cost(0)), "{name}, quiet: {}", cost(0));
            let permissions = per_member == 3.0;
            assert!(!permissions || cost(last) <= bound, "{name}, saturated: {}", cost(last));
        }
    }
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    let all = ["uniform", "hierarchical", "plane", "cube", "by size", "central", "broadcast"];
    assert!(all.iter().all(|name| names.iter().any(|row| row.starts_with(name))), "{names:?}");
    for worst in json["worst"].as_array().unwrap() {
        assert_eq!(worst["messages"], worst["bound"], "{worst}");
    }
}

/// Two sweeps on one page: every protocol under load, and after crashes.
#[test]
fn protocols_are_compared_on_one_page() {
    let folder = std::env::temp_dir().join(format!("quorate-compare-{}", std::process::id()));
    let table = stdout(&format!("sim figures compare --quick --out {}", folder.display()));
    let rows = |name: &str| table.lines().filter(|line| line.starts_with(name)).count();
    for name in ["central ", "arbiter-uniform ", "arbiter-cube ", "ring ", "raymond "] {
        assert_eq!(rows(name), 4, "twice under load and twice after crashes: {table}");
    }
    let page = std::fs::read_to_string(folder.join("index.html")).expect("a page");
    let parts = ["Under load", "After crashes", "seconds from free to next user", "<svg", "<table"];
    assert!(parts.iter().all(|part| page.contains(part)));
    assert!(!page.contains("src=") && !page.contains("<link"), "it needs nothing else");
    for name in ["load-waiting.svg", "load-results.csv", "crashes-results.json"] {
        assert!(folder.join(name).exists(), "{name}");
    }
    std::fs::remove_dir_all(&folder).expect("it is ours");
}

/// The same workload under several protocols; parts of it give what the whole gives.
#[test]
fn a_comparison_writes_a_page_a_picture_and_a_table_and_can_be_divided() {
    let folder = std::env::temp_dir().join(format!("quorate-contest-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let line = "compare --preset claims --repetitions 1 --protocol central --protocol raymond \
                --protocol ticket";
    let files = format!("--csv {} --html {} --svg {}", at("c.csv"), at("c.html"), at("c.svg"));
    let table = stdout(&format!("{line} {files}"));
    assert_eq!(table.lines().filter(|line| line.starts_with("central ")).count(), 3, "{table}");
    let why = "left out of claims: raymond: raymond serves 1 unit at a time, not 1:80,4:20";
    assert!(table.contains(why), "{table}");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(read("c.csv").starts_with("panel,protocol,nodes,units,"), "{}", read("c.csv"));
    let page = read("c.html");
    assert!(page.contains("<svg") && page.contains("prefers-color-scheme:dark"));
    assert!(!page.contains("src=") && !page.contains("<link"), "it needs nothing else");
    assert!(read("c.svg").matches("<svg").count() > 2, "several figures in one");
    let parts = at("parts");
    for part in ["1/2", "2/2"] {
        stdout(&format!("{line} --json --shard {part} --out {parts}"));
    }
    assert_eq!(stdout(&format!("merge {parts}")), stdout(&format!("{line} --json")));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What the papers state is found out anew, with every verdict as expected, and the pages about
/// them can be written.
#[test]
fn the_papers_are_executed_and_every_verdict_is_as_expected() {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/papers");
    std::fs::create_dir_all(folder).expect("a folder");
    let summary = stdout(&format!("reproduce --quick --docs {folder}"));
    for (paper, statement) in [
        ("k-arbiter", "KA-T4.5"),
        ("anonymous-resources", "AR-T2"),
        ("self-stabilizing-ring", "RING-A4"),
        ("timer-free", "TF-Lem2"),
    ] {
        assert!(summary.contains(paper), "{summary}");
        let page = std::fs::read_to_string(format!("{folder}/{paper}.md")).expect("a page");
        assert!(page.contains(statement), "{page}");
    }
    let one = stdout("reproduce --only KA-T4.5");
    assert!(one.contains("KA-T4.5") && one.contains("HOLDS AS CORRECTED"), "{one}");
    assert_eq!(quorate("reproduce --only KA-T99").status.code(), Some(2));
}

/// Parts that are merged say, byte for byte, what one run says; what was killed goes on where it
/// was; and what is missing, or of something else, is named.
#[test]
fn parts_of_a_campaign_give_what_one_run_gives() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("parts");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let experiment = folder.join("experiment.toml");
    let text = "protocols = [\"central\", \"raymond\"]\nnodes = 4\nrho = [1, 3]\nwarm_up = 5\n\
                measured = 20\nrepetitions = 2\nseries_step = 5\n";
    std::fs::write(&experiment, text).expect("written");
    let seeds = "sim seeds --count 3 --faults crashes --json".to_owned();
    let sweep = format!("sim sweep {}", experiment.display());
    let few = "reproduce --quick --only KA-T4.5,RING-I2,TF-E3b".to_owned();
    for (number, command) in [seeds, sweep.clone(), few].iter().enumerate() {
        let parts = folder.join(format!("parts{number}"));
        let parts = parts.display();
        for part in [1, 3] {
            stdout(&format!("{command} --shard {part}/3 --out {parts}"));
        }
        let missing = quorate(&format!("merge {parts}"));
        let error = String::from_utf8_lossy(&missing.stderr);
        assert!(missing.status.code() == Some(2) && error.contains("2/3"), "{missing:?}");
        // As it is when a process was killed in its second line.
        stdout(&format!("{command} --shard 2/3 --out {parts}"));
        let torn = folder.join(format!("parts{number}/part-002-of-003.jsonl"));
        let whole = std::fs::read_to_string(&torn).expect("a part");
        let cut = whole.find('\n').expect("a header") + 30;
        std::fs::write(&torn, &whole[..cut]).expect("written");
        let again = quorate(&format!("{command} --shard 2/3 --out {parts}"));
        assert_eq!(again.status.code(), Some(2), "nothing is overwritten: {again:?}");
        stdout(&format!("{command} --shard 2/3 --out {parts} --resume"));
        // Lines come in the order in which threads are done.
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(lines(&std::fs::read_to_string(&torn).expect("a part")), lines(&whole));
        let merged = stdout(&format!("merge {parts}"));
        if *command == sweep {
            let one = folder.join("one");
            stdout(&format!("{command} --out {}", one.display()));
            for name in ["results.csv", "results.json", "index.html"] {
                let read = |folder: &std::path::Path| {
                    std::fs::read_to_string(folder.join(name)).expect("results")
                };
                assert_eq!(read(&folder.join("parts1")), read(&one), "{name}");
            }
        } else {
            assert_eq!(merged, stdout(command));
        }
    }
    let other = format!(
        "sim seeds --count 4 --faults crashes --json --shard 1/3 --resume --out {}/parts0",
        folder.display()
    );
    let other = quorate(&other);
    let error = String::from_utf8_lossy(&other.stderr);
    assert!(other.status.code() == Some(2) && error.contains("another campaign"), "{error}");
    std::fs::remove_dir_all(&folder).expect("it is ours");
}
