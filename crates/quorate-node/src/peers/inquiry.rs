//! Before somebody says that the cluster is new, or that its majority is lost: does a member that
//! answers know better?
//!
//! This stops a script that runs `quorate init` out of habit, and an operator in a hurry. It proves
//! nothing: members that are down, or that lost their directories too, cannot object.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::NodeId;
use quorate_trust::Keys;
use quorate_wire::{Life, Resume};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::dial;
use super::greeting::{self, GreetingError, NO_LINK};
use crate::config::Config;

/// How long a member has to be there. Those that are not up yet are no reason to wait for long.
const TO_CONNECT: Duration = Duration::from_secs(1);
/// How long one that is there has to answer: it may be busy, and what it knows matters.
const TO_ANSWER: Duration = Duration::from_secs(10);

/// Why this cannot be the first start of a new cluster, if a member says so.
pub(crate) async fn objection(config: &Config, keys: Option<Keys>) -> Option<String> {
    let keys = keys.map(Arc::new);
    let config = Arc::new(config.clone());
    let mut calls = JoinSet::new();
    let others = (0..config.members.len()).map(NodeId::from).filter(|node| *node != config.me);
    for peer in others {
        let (config, keys) = (Arc::clone(&config), keys.clone());
        calls.spawn(async move { ask(&config, keys.as_deref(), peer).await });
    }
    while let Some(answer) = calls.join_next().await {
        let objection = answer.expect("asking does not panic");
        if objection.is_some() {
            return objection;
        }
    }
    None
}

/// Members that are there, by name: whoever greets, refuses us, or holds the line and says nothing.
pub(crate) async fn there(config: &Config, keys: Option<Keys>) -> Vec<String> {
    let keys = keys.map(Arc::new);
    let config = Arc::new(config.clone());
    let mut calls = JoinSet::new();
    let others = (0..config.members.len()).map(NodeId::from).filter(|node| *node != config.me);
    for peer in others {
        let (config, keys) = (Arc::clone(&config), keys.clone());
        calls.spawn(async move {
            let stream = timeout(TO_CONNECT, dial(&config, keys.as_deref(), peer)).await;
            let stream = stream.ok()?.ok()?;
            let greets = timeout(TO_ANSWER, greeting::call(&config, peer, NO_LINK, stream)).await;
            let is_there = matches!(greets, Err(_) | Ok(Ok(_) | Err(GreetingError::RefusedUs(_))));
            is_there.then(|| config.members[peer.index()].name.clone())
        });
    }
    let mut there = Vec::new();
    while let Some(answer) = calls.join_next().await {
        there.extend(answer.expect("asking does not panic"));
    }
    there.sort();
    there
}

async fn ask(config: &Config, keys: Option<&Keys>, peer: NodeId) -> Option<String> {
    let member = &config.members[peer.index()];
    let stream = timeout(TO_CONNECT, dial(config, keys, peer)).await.ok()?.ok()?;
    let name = &member.name;
    match timeout(TO_ANSWER, greeting::call(config, peer, NO_LINK, stream)).await.ok()? {
        Ok((_, Resume { life: Life { boot, .. }, .. })) if boot > 1 => {
            Some(format!("{name} has been started before: its boot number is {boot}"))
        }
        Err(GreetingError::RefusedUs(why)) => Some(format!("{name} says: {why}")),
        Err(GreetingError::Stranger(why)) => Some(format!("at the address of {name}: {why}")),
        _ => None,
    }
}
