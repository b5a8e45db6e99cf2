//! Where a build finds its tokens, which are bytes: two pipes that it inherits, or one that has a
//! name.
//!
//! *Inherited* pipes are two, not one as make's own: builds take tokens out of the first, which
//! only we fill, and give them back into the second, which only we read. So every token passes
//! through our hands, and if we are killed, whoever waits for one is told by the end of the file.
//! A pipe with a *name* has to serve for both, and we are one of many readers.

use std::fs::File;
use std::io::{ErrorKind, PipeWriter};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use nix::sys::stat::Mode;
use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionread};
use rustix::process::{Pid, test_kill_process};
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

/// How builds find their tokens.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
    /// Two descriptors that they inherit.
    Pipe,
    /// A file that they open.
    Fifo,
}

/// Our ends.
pub(super) struct Pipes {
    /// Where tokens are on offer; we may take them out again.
    offers: Sender,
    offered: Receiver,
    kind: Kind,
    /// Tokens that came back, and that the build cannot take.
    back: u32,
}

enum Kind {
    Inherited {
        /// Nothing once nobody is left who could give anything back.
        returns: Option<Receiver>,
        /// The build's ends, until it was started: it takes here and gives back there.
        theirs: Option<(File, PipeWriter)>,
    },
    Named(Folder),
}

/// Where a pipe with a name is.
struct Folder(PathBuf);

impl Folder {
    fn pipe(&self) -> PathBuf {
        self.0.join("tokens")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It is of no use to anybody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The byte that is a token, as make has it.
const TOKEN: u8 = b'+';
/// Our folders, before the number of the process.
const PREFIX: &str = "quorate-jobserver-";

impl Pipes {
    pub(super) fn make(style: Style) -> anyhow::Result<Pipes> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let path = parent.join(format!("{PREFIX}{}", std::process::id()));
        let shown = path.display().to_string();
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make {shown}; nothing was started"))?;
        let folder = Folder(path);
        Pipes::within(folder, style)
            .with_context(|| format!("cannot make a pipe in {shown}; nothing was started"))
    }

    /// Even the pipe that is inherited has a name for a moment: that way our end of it never waits,
    /// and theirs does.
    fn within(folder: Folder, style: Style) -> std::io::Result<Pipes> {
        let name = folder.pipe();
        nix::unistd::mkfifo(&name, Mode::from_bits_truncate(0o600))?;
        let mut both = OpenOptions::new();
        both.read_write(true);
        let (offers, offered) = (both.open_sender(&name)?, both.open_receiver(&name)?);
        let kind = match style {
            Style::Fifo => Kind::Named(folder),
            Style::Pipe => {
                let take = File::open(&name)?;
                let (returned, give) = std::io::pipe()?;
                fcntl_setfd(&take, FdFlags::empty())?;
                fcntl_setfd(&give, FdFlags::empty())?;
                let returns = Receiver::from_owned_fd(returned.into())?;
                Kind::Inherited { returns: Some(returns), theirs: Some((take, give)) }
            }
        };
        Ok(Pipes { offers, offered, kind, back: 0 })
    }

    /// What follows `--jobserver-auth=`.
    pub(super) fn address(&self) -> String {
        match &self.kind {
            Kind::Inherited { theirs: Some((take, give)), .. } => {
                format!("{},{}", take.as_raw_fd(), give.as_raw_fd())
            }
            Kind::Inherited { theirs: None, .. } => unreachable!("asked before the build starts"),
            Kind::Named(folder) => format!("fifo:{}", folder.pipe().display()),
        }
    }

    /// The build has its ends by now.
    pub(super) fn started(&mut self) {
        if let Kind::Inherited { theirs, .. } = &mut self.kind {
            *theirs = None;
        }
    }

    /// Whether tokens can go round without passing through our hands.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.kind, Kind::Named(_))
    }

    /// Puts one on offer.
    pub(super) fn give(&self) -> anyhow::Result<()> {
        self.offers.try_write(&[TOKEN]).context("cannot offer a token to the build")?;
        Ok(())
    }

    /// Tokens that nobody has taken, of so many that there are. A build that gives back what it
    /// never had is not believed.
    pub(super) fn idle(&mut self, tokens: u32) -> anyhow::Result<u32> {
        let waiting = ioctl_fionread(&self.offered).map_err(std::io::Error::from)?;
        let offered = u32::try_from(waiting).unwrap_or(u32::MAX).min(tokens);
        if let Kind::Inherited { returns, .. } = &mut self.kind {
            let mut bytes = [0; 256];
            while let Some(pipe) = returns {
                match pipe.try_read(&mut bytes) {
                    Ok(0) => *returns = None,
                    Ok(read) => self.back = self.back.saturating_add(read as u32),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => {
                        return Err(error).context("cannot read what the build gives back");
                    }
                }
            }
            self.back = self.back.min(tokens - offered);
        }
        Ok(offered + self.back)
    }

    /// Takes tokens away: what came back first, then what is on offer. Says how many it got: others
    /// may have been faster.
    pub(super) fn take(&mut self, wanted: u32) -> anyhow::Result<u32> {
        let mut taken = wanted.min(self.back);
        self.back -= taken;
        while taken < wanted {
            match self.offered.try_read(&mut [0; 1]) {
                Ok(0) => break,
                Ok(_) => taken += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("cannot take a token back"),
            }
        }
        Ok(taken)
    }

    /// Offers again what came back.
    pub(super) fn pass_on(&mut self) -> anyhow::Result<()> {
        while self.back > 0 {
            self.give()?;
            self.back -= 1;
        }
        Ok(())
    }

    /// Waits until something comes back: in vain, where that passes us by, unless `all` that is on
    /// offer is meant.
    pub(super) async fn news(&self, all: bool) {
        let pipe = match &self.kind {
            Kind::Inherited { returns, .. } => returns.as_ref(),
            Kind::Named(_) => Some(&self.offered).filter(|_| all),
        };
        match pipe {
            Some(pipe) if pipe.readable().await.is_ok() => {}
            _ => std::future::pending().await,
        }
    }
}

/// Removes what wrappers that were killed have left, of those that are nobody's any more.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
        let Some(process) = process.and_then(Pid::from_raw) else { continue };
        if test_kill_process(process) == Err(rustix::io::Errno::SRCH) {
            // Another user's stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
