//! What is on the screen, and what keys do to it.

use quorate_api::{ClaimId, HolderView, Overview, PoolRow, WaiterView};
use quorate_client::Screen;

use super::terminal::Key;

/// Most rows that are asked for: a terminal shows fewer.
const ROWS: usize = 200;

/// Something to be done outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Do {
    Nothing,
    Quit,
    Reload,
    Why(String, ClaimId),
    Revoke(String, ClaimId, String),
}

/// Which list has the cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum List {
    #[default]
    Pools,
    Holders,
    Queue,
}

/// What keys are typed into.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Typing {
    #[default]
    Nothing,
    Filter,
    /// The reason for revoking this claim.
    Reason(ClaimId, String),
}

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) view: Option<Overview>,
    /// Why there is no newer view.
    pub(super) problem: Option<String>,
    pub(super) list: List,
    pub(super) pool: Option<String>,
    pub(super) filter: String,
    pub(super) sort: usize,
    pub(super) cursor: usize,
    pub(super) typing: Typing,
    /// A text over everything else.
    pub(super) popup: Option<String>,
    /// What was done last.
    pub(super) said: String,
}

impl Model {
    /// Which part of the cluster is asked for.
    pub(super) fn screen(&self) -> Screen {
        let pools = self.list == List::Pools;
        let search = if pools { self.filter.clone() } else { String::new() };
        let (pool, unavailable_first) = (self.pool.clone(), true);
        Screen { search, page: 0, rows: ROWS, pool, unavailable_first, only: None }
    }

    pub(super) fn update(&mut self, answer: Result<Overview, String>) {
        match answer {
            Ok(view) => (self.view, self.problem) = (Some(view), None),
            Err(problem) => self.problem = Some(problem),
        }
        self.cursor = self.cursor.min(self.length().saturating_sub(1));
    }

    pub(super) fn say(&mut self, text: String) {
        self.said = text;
    }

    pub(super) fn show(&mut self, text: String) {
        self.popup = Some(text);
    }

    /// The pools that are listed, in order; those that grant nothing first.
    pub(super) fn pools(&self) -> Vec<&PoolRow> {
        let mut pools: Vec<&PoolRow> = self.view.iter().flat_map(|view| &view.pools).collect();
        match self.sort % 3 {
            0 => pools.sort_by(|a, b| a.name.cmp(&b.name)),
            1 => pools.sort_by_key(|pool| std::cmp::Reverse((pool.waiting, pool.held))),
            _ => pools.sort_by_key(|pool| {
                std::cmp::Reverse(pool.held * 1000 / u64::from(pool.units.max(1)))
            }),
        }
        pools.sort_by_key(|pool| pool.grants.grants());
        pools
    }

    pub(super) fn sort_name(&self) -> &'static str {
        match (self.list, self.sort % 3) {
            (List::Pools, 0) => "name",
            (List::Pools, 1) => "waiting",
            (List::Pools, _) => "use",
            (_, 0) => "order",
            (_, 1) => "units",
            (_, _) => "who",
        }
    }

    pub(super) fn holders(&self) -> Vec<&HolderView> {
        let all = self.view.iter().flat_map(|view| &view.pool).flat_map(|pool| &pool.holders);
        let mut list: Vec<_> =
            all.filter(|h| self.fits(&[&h.client, &h.reason, &h.node])).collect();
        match self.sort % 3 {
            0 => {}
            1 => list.sort_by_key(|holder| std::cmp::Reverse(holder.count)),
            _ => list.sort_by(|a, b| a.client.cmp(&b.client)),
        }
        list
    }

    pub(super) fn queue(&self) -> Vec<&WaiterView> {
        let all = self.view.iter().flat_map(|view| &view.pool).flat_map(|pool| &pool.queue);
        let mut list: Vec<_> =
            all.filter(|w| self.fits(&[&w.client, &w.reason, &w.node])).collect();
        match self.sort % 3 {
            0 => {}
            1 => list.sort_by_key(|waiter| std::cmp::Reverse(waiter.count)),
            _ => list.sort_by(|a, b| a.client.cmp(&b.client)),
        }
        list
    }

    fn fits(&self, texts: &[&str]) -> bool {
        self.filter.is_empty() || texts.iter().any(|text| text.contains(&self.filter))
    }

    fn length(&self) -> usize {
        match self.list {
            List::Pools => self.pools().len(),
            List::Holders => self.holders().len(),
            List::Queue => self.queue().len(),
        }
    }

    /// Where the cursor is, if it is in this list.
    pub(super) fn cursor_in(&self, list: List) -> Option<usize> {
        (self.list == list).then_some(self.cursor)
    }

    fn chosen(&self) -> Option<ClaimId> {
        match self.list {
            List::Pools => None,
            List::Holders => self.holders().get(self.cursor).map(|holder| holder.id),
            List::Queue => self.queue().get(self.cursor).map(|waiter| waiter.id),
        }
    }

    pub(super) fn key(&mut self, key: Key) -> Do {
        if key == Key::Interrupt {
            return Do::Quit;
        }
        if self.popup.take().is_some() {
            return Do::Nothing;
        }
        if self.typing != Typing::Nothing {
            return self.typed(key);
        }
        self.said.clear();
        match key {
            Key::Char('q') => return Do::Quit,
            Key::Up | Key::Char('k') => self.cursor = self.cursor.saturating_sub(1),
            Key::Down | Key::Char('j') => {
                self.cursor = (self.cursor + 1).min(self.length().saturating_sub(1));
            }
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = self.length().saturating_sub(1),
            Key::Char('s') => self.sort += 1,
            Key::Char('/') => self.typing = Typing::Filter,
            Key::Enter if self.list == List::Pools => return self.enter(),
            Key::Tab if self.list == List::Holders => self.turn(List::Queue),
            Key::Tab if self.list == List::Queue => self.turn(List::Holders),
            Key::Esc if self.list == List::Pools => {
                self.filter.clear();
                return Do::Reload;
            }
            Key::Esc | Key::Backspace => {
                self.pool = None;
                self.turn(List::Pools);
                return Do::Reload;
            }
            Key::Char('w') => {
                if let (Some(pool), Some(id)) = (&self.pool, self.chosen()) {
                    return Do::Why(pool.clone(), id);
                }
            }
            Key::Char('r') => {
                if let Some(id) = self.chosen() {
                    self.typing = Typing::Reason(id, String::new());
                }
            }
            _ => {}
        }
        Do::Nothing
    }

    fn enter(&mut self) -> Do {
        let Some(name) = self.pools().get(self.cursor).map(|pool| pool.name.clone()) else {
            return Do::Nothing;
        };
        self.pool = Some(name);
        self.turn(List::Holders);
        Do::Reload
    }

    fn turn(&mut self, list: List) {
        if (self.list == List::Pools) != (list == List::Pools) {
            self.filter.clear();
        }
        (self.list, self.cursor, self.sort) = (list, 0, 0);
    }

    fn typed(&mut self, key: Key) -> Do {
        let text = match &mut self.typing {
            Typing::Filter => &mut self.filter,
            Typing::Reason(_, reason) => reason,
            Typing::Nothing => return Do::Nothing,
        };
        match key {
            Key::Char(c) => text.push(c),
            Key::Backspace => drop(text.pop()),
            Key::Esc => {
                self.typing = Typing::Nothing;
                return Do::Nothing;
            }
            Key::Enter => return self.entered(),
            _ => return Do::Nothing,
        }
        self.cursor = 0;
        if self.typing == Typing::Filter { Do::Reload } else { Do::Nothing }
    }

    fn entered(&mut self) -> Do {
        match std::mem::take(&mut self.typing) {
            Typing::Reason(id, reason) if reason.trim().is_empty() => {
                self.typing = Typing::Reason(id, reason);
                self.say("a reason is needed: its client will read it".into());
                Do::Nothing
            }
            Typing::Reason(id, reason) => match &self.pool {
                Some(pool) => Do::Revoke(pool.clone(), id, reason),
                None => Do::Nothing,
            },
            Typing::Filter => Do::Reload,
            Typing::Nothing => Do::Nothing,
        }
    }
}
