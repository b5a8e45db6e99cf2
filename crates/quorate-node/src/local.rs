//! The clients' door for those on the node's own machine: a Unix socket.
//!
//! The system says who calls there, and nobody can lie about it: root and the user that runs the
//! node are administrators, whatever token they show or have lost. Everybody else who may open the
//! socket (its group, and nobody but its group) shows a token, as anywhere.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixSocket, UnixStream};

use crate::caller::Caller;

/// For its owner and its group.
const MODE: u32 = 0o660;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// Whom the system names where a caller's user has no number here (`overflowuid`): everybody of
/// another user namespace. A node that runs as this user tells nobody apart by it.
const ANYBODY: u32 = 65534;

/// A Unix socket that is listened to; its file goes with it.
#[derive(Debug)]
pub(crate) struct Local {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file: another one of the same name is somebody else's.
    file: (u64, u64),
}

impl Local {
    /// Listens there. The socket of a node that is dead is replaced.
    ///
    /// # Errors
    /// In words; what was there before still is.
    pub(crate) fn bind(path: &Path) -> Result<Local, String> {
        let shown = path.display();
        let wrong = |error: io::Error| format!("cannot listen at {shown}: {error}");
        // Of two nodes that begin at once, each could take the other's socket for a dead one.
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let lock = File::open(folder).map_err(wrong)?;
        if lock.try_lock().is_err() {
            return Err(format!("cannot listen at {shown}: its folder is locked; try again"));
        }
        clear(path)?;
        let socket = UnixSocket::new_stream().map_err(wrong)?;
        socket.bind(path).map_err(wrong)?;
        // Nobody is let in before the mode is right: without `listen`, connecting is refused.
        let listening = fs::set_permissions(path, Permissions::from_mode(MODE))
            .and_then(|()| Ok((mark(path)?, socket.listen(BACKLOG)?)));
        match listening {
            Ok((file, listener)) => Ok(Local { listener, path: path.to_owned(), file }),
            Err(error) => {
                // It is ours, and of no use.
                let _ = fs::remove_file(path);
                Err(wrong(error))
            }
        }
    }

    /// The next client, and who it is.
    pub(crate) async fn accept(&self) -> io::Result<(UnixStream, u32)> {
        let (stream, _) = self.listener.accept().await?;
        let user = stream.peer_cred()?.uid();
        Ok((stream, user))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if mark(&self.path).is_ok_and(|file| file == self.file) {
            // Whatever stays is found to be dead at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn mark(path: &Path) -> io::Result<(u64, u64)> {
    let it = fs::symlink_metadata(path)?;
    Ok((it.dev(), it.ino()))
}

/// Takes a dead node's socket away.
fn clear(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    if !there.file_type().is_socket() {
        return Err(format!("{shown} is there and no socket: it was left as it is"));
    }
    match StdStream::connect(path) {
        Ok(_) => Err(format!("somebody listens at {shown}: it was left as it is")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|error| format!("{shown} is a dead node's, and cannot be removed: {error}")),
        Err(error) => Err(format!("{shown} is there and may be in use ({error}): left as it is")),
    }
}

/// Who calls, if the system says that it is this user.
pub(crate) fn whose(user: u32) -> Caller {
    whose_for(user, geteuid().as_raw())
}

fn whose_for(user: u32, own: u32) -> Caller {
    match user {
        0 => Caller::Administrator,
        ANYBODY => Caller::Anonymous,
        _ if user == own => Caller::Administrator,
        _ => Caller::Anonymous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(test: &str) -> PathBuf {
        let name = format!("quorate-local-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[tokio::test]
    async fn a_dead_nodes_socket_is_replaced_and_a_living_ones_is_left() {
        let folder = folder("replaced");
        let path = folder.join("a.sock");
        // Nobody removes this one: as after a crash.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let local = Local::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        let said = Local::bind(&path).unwrap_err();
        assert!(said.contains("somebody listens"), "{said}");
        let (accepted, called) = tokio::join!(local.accept(), UnixStream::connect(&path));
        assert_eq!(accepted.unwrap().1, geteuid().as_raw());
        called.unwrap();
        drop(local);
        assert!(!path.exists(), "it goes with the node");
        fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn what_is_no_socket_of_ours_is_left_as_it_is() {
        let folder = folder("left");
        let path = folder.join("a.sock");
        fs::write(&path, "precious").unwrap();
        assert!(Local::bind(&path).unwrap_err().contains("no socket"));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_file(&path).unwrap();
        let local = Local::bind(&path).unwrap();
        // Somebody put another file there: it is not removed in our stead.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(local);
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
        // While somebody else makes a socket in the folder, nobody takes one for dead.
        let other = File::open(&folder).unwrap();
        other.try_lock().unwrap();
        assert!(Local::bind(&path).unwrap_err().contains("try again"));
        assert!(Local::bind(&folder.join("nowhere/a.sock")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn root_and_the_nodes_own_user_are_administrators_and_nobody_else() {
        let rows = [
            (0, 997, Caller::Administrator),
            (997, 997, Caller::Administrator),
            (998, 997, Caller::Anonymous),
            (0, 0, Caller::Administrator),
            (1000, 0, Caller::Anonymous),
            // Users that have no number here all have the same one.
            (ANYBODY, ANYBODY, Caller::Anonymous),
        ];
        for (user, own, expected) in rows {
            assert_eq!(whose_for(user, own), expected, "{user} at a node of {own}");
        }
    }
}
