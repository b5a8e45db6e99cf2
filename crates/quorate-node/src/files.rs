//! The files of a running node, looked at from time to time: whether there is something new to take
//! up. Their contents are compared, following links: Kubernetes swaps a link and leaves times as
//! they were, and a file that was only touched says nothing new.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::{Config, digest};

/// The configuration and the files that it names.
#[derive(Debug)]
pub struct Files {
    config: PathBuf,
    /// What was there when a node last read them, or tried to.
    tried: u64,
    /// What was there at the last look.
    seen: u64,
}

impl Files {
    /// Those of a node that has just read them.
    pub fn new(config: &Path) -> Files {
        let now = contents(config);
        Files { config: config.to_owned(), tried: now, seen: now }
    }

    /// Where the configuration is.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Looks at them: whether they should be read. Only what was the same at two looks is: whoever
    /// writes files may be in the middle of it, and half a list of tokens is a list of tokens.
    pub fn changed(&mut self) -> bool {
        let now = contents(&self.config);
        let settled = now == std::mem::replace(&mut self.seen, now);
        settled && now != self.tried
    }

    /// Reads the configuration; from now on it counts as known, whatever comes of it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(&mut self) -> Result<Config, crate::ConfigError> {
        self.tried = contents(&self.config);
        self.seen = self.tried;
        Config::read(&self.config)
    }
}

/// All of them in one number. A file that cannot be read is also something that may be new.
fn contents(config: &Path) -> u64 {
    let of = |read: &io::Result<Vec<u8>>| match read {
        Ok(bytes) => digest(bytes),
        Err(error) => digest(error.to_string().as_bytes()),
    };
    let text = std::fs::read(config);
    let named = text.as_deref().ok().and_then(|text| std::str::from_utf8(text).ok());
    let tls = named.and_then(Config::files_of);
    let files = tls.iter().flat_map(|tls| [&tls.ca, &tls.cert, &tls.key]);
    let all = files.map(|file| of(&std::fs::read(file)));
    let numbers: Vec<u8> = [of(&text)].into_iter().chain(all).flat_map(u64::to_le_bytes).collect();
    digest(&numbers)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_changed_is_taken_up_once_when_it_has_settled() {
        let name = format!("quorate-files-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("v1")).unwrap();
        fs::create_dir_all(folder.join("v2")).unwrap();
        for version in ["v1", "v2"] {
            for file in ["ca", "cert", "key"] {
                fs::write(folder.join(version).join(file), format!("{file} {version}")).unwrap();
            }
        }
        // As Kubernetes has it: the files are links through a link to a folder.
        symlink("v1", folder.join("data")).unwrap();
        let path = folder.join("a.toml");
        let within = |file: &str| folder.join("data").join(file);
        let text = format!(
            "[tls]\nca = {:?}\ncert = {:?}\nkey = {:?}\n",
            within("ca"),
            within("cert"),
            within("key")
        );
        fs::write(&path, &text).unwrap();
        let mut files = Files::new(&path);
        assert!(!files.changed() && !files.changed());
        symlink("v2", folder.join("new")).unwrap();
        fs::rename(folder.join("new"), folder.join("data")).unwrap();
        assert!(!files.changed(), "it may go on changing");
        assert!(files.changed());
        assert!(files.read().is_err(), "it is no configuration");
        assert!(!files.changed() && !files.changed(), "nothing is tried twice");
        // Half of a file is seen once, and the whole one is taken up.
        fs::write(&path, &text[..9]).unwrap();
        assert!(!files.changed());
        fs::write(&path, text.replace("[tls]", "epoch = 2\n[tls]")).unwrap();
        assert!(!files.changed());
        assert!(files.changed());
        let _ = files.read();
        // Only touched, and gone.
        fs::write(folder.join("v2/ca"), "ca v2").unwrap();
        assert!(!files.changed() && !files.changed());
        fs::remove_file(folder.join("v2/key")).unwrap();
        assert!(!files.changed());
        assert!(files.changed(), "that it is gone is to be said");
        fs::remove_dir_all(folder).unwrap();
    }
}
