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
    assert_eq!(boot.lease_before, Duration::from_secs(3600));
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
