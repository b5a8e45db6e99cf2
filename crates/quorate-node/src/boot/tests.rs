//! Starts one after the other, with what each may assume.

use super::*;

/// A directory of this test's own, and a file for a node that keeps its things there.
fn node(test: &str) -> (PathBuf, String) {
    let directory = std::env::temp_dir().join(format!("quorate-{test}-{}", std::process::id()));
    let text = format!(
        "cluster = \"c\"\nepoch = 1\nnode = \"a\"\ndata_dir = {directory:?}\n\
         listen = {{ clients = \"127.0.0.1:1\", peers = \"127.0.0.1:2\" }}\n\
         members = [{{ name = \"a\", peers = \"127.0.0.1:2\" }}]\n\
         [[pools]]\nname = \"p\"\nunits = 1\nlease = \"1h\"\n"
    );
    (directory, text)
}

const HOUR: Duration = Duration::from_secs(3600);

fn parse(text: &str) -> Config {
    Config::parse(text).unwrap()
}

#[tokio::test]
async fn every_start_has_a_greater_number_also_if_it_forgets_twice_in_a_minute() {
    let (directory, text) = node("boot");
    let config = parse(&text);
    // A minute begins whenever somebody has looked three times, and goes by between starts that
    // find what they wrote.
    let looks = std::cell::Cell::new(300);
    let mut minutes = || {
        looks.set(looks.get() + 1);
        looks.get() / 3
    };
    let (mut last, mut marks) = (0, Vec::new());
    for wiped in [true, false, true, true, true, false] {
        if wiped {
            let _ = fs::remove_dir_all(&directory);
        } else {
            looks.set(looks.get() + 6);
        }
        let boot = count_by(&config, &mut minutes).await.unwrap();
        assert!(boot.number > last, "{} after {last}", boot.number);
        assert_eq!(boot.past == Past::Unknown, wiped);
        boot.take_up(&config).unwrap();
        last = boot.number;
        marks.push(boot.life().mark);
    }
    marks.dedup();
    assert_eq!(marks.len(), 6, "lives are told apart");
    fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_start_that_fails_before_its_journal_is_cleared_leaves_the_past_unknown() {
    let (directory, text) = node("past");
    let (old, new) = (parse(&text), parse(&text.replace("epoch = 1", "epoch = 2")));
    declare_new(&old).unwrap();
    let (complete, partly) = (Past::Same { complete: true }, Past::Same { complete: false });
    for (config, past, fails) in [
        (&old, Past::Nothing, false),
        (&old, complete, false),
        (&new, Past::Unknown, true),
        (&new, Past::Unknown, false),
        (&new, partly, true),
        (&new, partly, false),
        (&old, Past::Unknown, false),
    ] {
        let boot = count(config).await.unwrap();
        assert_eq!(boot.past, past);
        if !fails {
            boot.take_up(config).unwrap();
        }
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn an_empty_directory_never_means_that_the_cluster_is_new() {
    let (directory, text) = node("lost");
    let config = parse(&text);
    let (mut minutes, mut last) = (400_000.., 0);
    for said in [true, false, false] {
        if said {
            declare_new(&config).unwrap();
        }
        let boot = count_by(&config, || minutes.next().unwrap()).await.unwrap();
        assert!(boot.number > last, "{} after {last}", boot.number);
        assert_eq!(boot.past == Past::Nothing, said);
        boot.take_up(&config).unwrap();
        last = boot.number;
        drop(boot);
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[tokio::test]
async fn that_the_cluster_is_new_is_said_of_unused_directories_and_used_up() {
    let (directory, text) = node("new");
    let config = parse(&text);
    let later = parse(&text.replace("epoch = 1", "epoch = 2"));
    assert!(matches!(declare_new(&later), Err(BootError::LaterEpoch(2))));
    // Repeating it is harmless.
    (0..2).for_each(|_| declare_new(&config).unwrap());
    let boot = count(&config).await.unwrap();
    assert_eq!((boot.number, boot.past), (1, Past::Nothing));
    assert!(matches!(declare_new(&config), Err(BootError::InUse(_))));
    drop(boot);
    // It crashed before it took up its journal, and promised nothing; but who knows?
    assert!(matches!(declare_new(&config), Err(BootError::Used(_))));
    assert_eq!(count(&config).await.unwrap().past, Past::Unknown);
    // A journal without a count is what is left of something.
    fs::remove_file(directory.join("boot")).unwrap();
    fs::write(journal(&directory), "").unwrap();
    assert!(matches!(declare_new(&config), Err(BootError::Used(_))));
    fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn what_was_said_of_one_configuration_says_nothing_about_the_next() {
    let (directory, text) = node("said");
    declare_new(&parse(&text)).unwrap();
    // Others may hold what they got under the first.
    let other = parse(&text.replace("epoch = 1", "epoch = 2").replace("1h", "1s"));
    let boot = count(&other).await.unwrap();
    assert_eq!((boot.number, boot.past), (1, Past::Unknown));
    assert_eq!(boot.before.by("p"), HOUR);
    fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_journal_that_is_gone_says_nothing() {
    let (directory, text) = node("gone");
    let config = parse(&text.replace("units = 1", "units = 1\ndurable = true"));
    declare_new(&config).unwrap();
    for (journal_is_there, past) in
        [(false, Past::Nothing), (true, Past::Same { complete: true }), (false, Past::Unknown)]
    {
        let file = journal(&directory);
        if journal_is_there {
            fs::write(&file, "").unwrap();
        } else {
            let _ = fs::remove_file(&file);
        }
        let boot = count(&config).await.unwrap();
        assert_eq!(boot.past, past);
        boot.take_up(&config).unwrap();
    }
    fs::remove_dir_all(&directory).unwrap();
}

/// A node whose pools have these names or patterns, and leases of so many seconds.
fn pools(text: &str, pools: &[(&str, u64)]) -> Config {
    let (head, _) = text.split_once("[[pools]]").unwrap();
    let pool = |(label, seconds): &(&str, u64)| {
        let key = if label.contains('*') { "pattern" } else { "name" };
        format!("[[pools]]\n{key} = \"{label}\"\nunits = 1\nlease = \"{seconds}s\"\n")
    };
    parse(&(head.to_owned() + &pools.iter().map(pool).collect::<String>()))
}

/// What the next start takes earlier ones to have promised.
async fn before(config: &Config) -> Promised {
    let boot = count(config).await.unwrap();
    boot.take_up(config).unwrap();
    boot.before.clone()
}

#[tokio::test]
async fn a_pool_waits_for_its_own_leases_and_for_no_others() {
    let (directory, text) = node("own");
    let names = ["day", "short", "job-1", "job-2", "new"];
    let leases = |promised: &Promised| names.map(|name| promised.by(name).as_secs());
    let first = pools(&text, &[("day", 86_400), ("short", 2), ("job-1", 3), ("job-*", 60)]);
    declare_new(&first).unwrap();
    assert_eq!(leases(&before(&first).await), [86_400, 2, 3, 60, 0], "as declared");
    assert_eq!(leases(&before(&first).await), [86_400, 2, 3, 60, 0], "again");
    // One is shortened, one lengthened, one disappears, and one loses its name to a pattern.
    let second = pools(&text, &[("day", 5), ("short", 9), ("*-1", 1)]);
    assert_eq!(leases(&before(&second).await), [86_400, 2, 3, 60, 0]);
    let third = pools(&text, &[("job-*", 4)]);
    assert_eq!(leases(&before(&third).await), [86_400, 9, 3, 60, 0], "the longer of two");
    // Those that come back find what they promised long ago, with whatever lease they have now.
    assert_eq!(leases(&before(&first).await), [86_400, 9, 4, 60, 0]);
    fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn each_older_lease_is_forgotten_when_it_has_passed() {
    let (directory, text) = node("settled");
    let first = pools(&text, &[("day", 86_400), ("job-1", 3), ("job-*", 60)]);
    declare_new(&first).unwrap();
    before(&first).await;
    assert!(steps(&first, &count(&first).await.unwrap()).is_empty(), "nothing is older");
    let second = pools(&text, &[("day", 5), ("job-*", 4)]);
    let boot = count(&second).await.unwrap();
    let steps: Vec<(u64, [u64; 3])> = steps(&second, &boot)
        .into_iter()
        .map(|(at, kept)| {
            write(&second, &kept).unwrap();
            let left = enter_again(&directory).promised;
            (at.as_secs(), ["day", "job-1", "job-2"].map(|name| left.by(name).as_secs()))
        })
        .collect();
    let expected = [(3, [86_400, 4, 60]), (60, [86_400, 4, 4]), (86_400, [5, 4, 4])];
    assert_eq!(steps, expected);
    fs::remove_dir_all(&directory).unwrap();
}

fn enter_again(directory: &Path) -> Kept {
    super::parse(&fs::read_to_string(directory.join("boot")).unwrap()).unwrap()
}

#[tokio::test]
async fn a_file_with_one_lease_for_all_pools_counts_for_all_and_half_a_file_for_none() {
    let (directory, text) = node("older");
    let config = pools(&text, &[("p", 2), ("q*", 3)]);
    declare_new(&config).unwrap();
    let path = directory.join("boot");
    let old = format!("boot 7\ndigest {:016x}\nlease_ms 3600000\ncomplete true\n", config.digest);
    fs::write(&path, old).unwrap();
    let boot = count(&config).await.unwrap();
    assert_eq!((boot.number, boot.past), (8, Past::Same { complete: true }));
    assert_eq!(["p", "q1", "z"].map(|name| boot.before.by(name)), [HOUR; 3]);
    assert_eq!(boot.before.by_any(&config.pools[1].names), HOUR);
    // After an hour, each has its own.
    let (at, kept) = steps(&config, &boot).pop().unwrap();
    write(&config, &kept).unwrap();
    drop(boot);
    assert_eq!(at, HOUR);
    let boot = count(&config).await.unwrap();
    assert_eq!(["p", "q1", "z"].map(|name| boot.before.by(name).as_secs()), [2, 3, 0]);
    drop(boot);
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for length in 0..lines.len() {
        fs::write(&path, lines[..length].join("\n")).unwrap();
        assert!(matches!(count(&config).await, Err(BootError::Damaged(_))), "{length} lines");
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn many_configurations_in_a_row_make_a_wait_longer_and_never_shorter() {
    let (directory, text) = node("many");
    let first = pools(&text, &[("p", 100), ("q", 1)]);
    declare_new(&first).unwrap();
    for lease in 2..40 {
        let config = pools(&text, &[("p", 1), ("q", lease)]);
        let promised = before(&config).await;
        assert_eq!(promised.by("p").as_secs(), 100);
        assert!(promised.by("q").as_secs() >= lease - 1);
        assert!(fs::metadata(directory.join("boot")).unwrap().len() < 1000);
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn names_that_may_share_a_pool_are_never_told_apart() {
    let all = ["a", "ab", "abc", "*", "a*", "ab*", "*b", "*bc", "a*c", "b*c", "a*bc"];
    let names = |label: &str| crate::config::Names::read(label).unwrap();
    for (one, two) in all.iter().flat_map(|one| all.iter().map(move |two| (*one, *two))) {
        let share = ["a", "ab", "abc", "b", "bc", "abbc", "bac", "axc", "abxbc", "bxc"]
            .iter()
            .any(|name| names(one).covers(name) && names(two).covers(name));
        assert!(!share || names(one).may_share(&names(two)), "{one} {two}");
        assert_eq!(names(one).may_share(&names(two)), names(two).may_share(&names(one)));
        assert_eq!(names(one).label(), one);
    }
    assert!(!names("a*").may_share(&names("b*")) && !names("*a").may_share(&names("*b")));
    assert!(crate::config::Names::read("a**").is_none());
}
