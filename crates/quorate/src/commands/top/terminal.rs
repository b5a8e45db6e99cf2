//! The terminal that `quorate top` takes: a screen of its own without a cursor, and every key at
//! once. It is given back as it was when this value is dropped.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use super::canvas::Canvas;

/// A key that means something here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Char(char),
    Up,
    Down,
    Home,
    End,
    Enter,
    Tab,
    Esc,
    Backspace,
    /// Ctrl-C.
    Interrupt,
}

/// Leaves the screen that `take` entered.
const GIVE_BACK: &[u8] = b"\x1b[?25h\x1b[?1049l";

pub(super) struct Terminal {
    keyboard: File,
    before: Termios,
    colors: bool,
    /// What it shows.
    shown: String,
}

impl Terminal {
    pub(super) fn take() -> io::Result<Terminal> {
        let keyboard = File::open("/dev/tty")?;
        let before = tcgetattr(&keyboard)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&keyboard, OptionalActions::Now, &raw)?;
        let colors = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let terminal = Terminal { keyboard, before, colors, shown: String::new() };
        // What a panic says is for the screen that stays.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _ = write(GIVE_BACK);
            hook(panic);
        }));
        write(b"\x1b[?1049h\x1b[?25l")?;
        Ok(terminal)
    }

    /// An empty sheet of the size that the terminal has now.
    pub(super) fn canvas(&self) -> io::Result<Canvas> {
        let size = tcgetwinsize(&self.keyboard)?;
        Ok(Canvas::new(size.ws_col.into(), size.ws_row.into()))
    }

    pub(super) fn show(&mut self, canvas: &Canvas) -> io::Result<()> {
        let wanted = canvas.escapes(self.colors);
        if wanted != self.shown {
            // Terminals that know these two marks show everything between them at once.
            write(format!("\x1b[?2026h{wanted}\x1b[?2026l").as_bytes())?;
            self.shown = wanted;
        }
        Ok(())
    }

    /// Keys are read on a thread of their own: reading them blocks.
    pub(super) fn keys(&self) -> io::Result<mpsc::Receiver<Key>> {
        let mut keyboard = self.keyboard.try_clone()?;
        let (sender, receiver) = mpsc::channel(16);
        std::thread::spawn(move || {
            let (mut bytes, mut some) = (Vec::new(), [0; 256]);
            while let Ok(read @ 1..) = keyboard.read(&mut some) {
                bytes.extend_from_slice(&some[..read]);
                for key in keys_in(&mut bytes) {
                    if sender.blocking_send(key).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(receiver)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to give back.
        let _ = write(GIVE_BACK);
        let _ = tcsetattr(&self.keyboard, OptionalActions::Now, &self.before);
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Takes the keys out of what the terminal sent; a character of which bytes are missing stays.
fn keys_in(bytes: &mut Vec<u8>) -> Vec<Key> {
    let (mut keys, mut at) = (Vec::new(), 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let (key, length) = match rest {
            [b'\r' | b'\n', ..] => (Some(Key::Enter), 1),
            [b'\t', ..] => (Some(Key::Tab), 1),
            [0x08 | 0x7f, ..] => (Some(Key::Backspace), 1),
            [0x03, ..] => (Some(Key::Interrupt), 1),
            [0x1b, b'O', letter, ..] => (named(&[], *letter), 3),
            [0x1b, b'[', sequence @ ..] => {
                let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
                let end = end.unwrap_or(sequence.len());
                let letter = sequence.get(end).copied().unwrap_or_default();
                (named(&sequence[..end], letter), (end + 3).min(rest.len()))
            }
            [0x1b, ..] => (Some(Key::Esc), 1),
            [0..0x20, ..] => (None, 1),
            _ => match character(rest) {
                Some((c, length)) => (c.map(Key::Char), length),
                None => break,
            },
        };
        keys.extend(key);
        at += length;
    }
    bytes.drain(..at);
    keys
}

/// The key of an escape sequence, by its numbers and the letter at its end.
fn named(numbers: &[u8], letter: u8) -> Option<Key> {
    match (numbers, letter) {
        (_, b'A') => Some(Key::Up),
        (_, b'B') => Some(Key::Down),
        (_, b'H') | (b"1" | b"7", b'~') => Some(Key::Home),
        (_, b'F') | (b"4" | b"8", b'~') => Some(Key::End),
        _ => None,
    }
}

/// The first character and how many bytes it has, `None` in its place if they are none; nothing if
/// more bytes must come first.
fn character(bytes: &[u8]) -> Option<(Option<char>, usize)> {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => match (error.valid_up_to(), error.error_len()) {
            (0, None) => return None,
            (0, Some(length)) => return Some((None, length)),
            (valid, _) => std::str::from_utf8(&bytes[..valid]).unwrap_or_default(),
        },
    };
    valid.chars().next().map(|c| (Some(c), c.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_terminal_are_keys() {
        let mut bytes = b"q\x1b[A\x1bOB\x1b[1~\x1b[F\r\t\x7f\x03\x1b[15;2~\x01\xff\x1b".to_vec();
        let keys = keys_in(&mut bytes);
        use Key::*;
        let all = [Char('q'), Up, Down, Home, End, Enter, Tab, Backspace, Interrupt, Esc];
        assert_eq!(keys, all, "what means nothing here is left out");
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let mut bytes = "a€".as_bytes()[..2].to_vec();
        assert_eq!(keys_in(&mut bytes), [Key::Char('a')]);
        bytes.extend_from_slice(&"€".as_bytes()[1..]);
        assert_eq!(keys_in(&mut bytes), [Key::Char('€')]);
    }
}
