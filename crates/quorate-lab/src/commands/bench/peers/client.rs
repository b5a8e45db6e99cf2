//! A client of any of the systems, with a lock of its own that nobody else wants.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::Context as _;
use quorate_client::{Grant, Pool};

use super::super::measure::Window;
use super::etcd::Etcd;
use super::raw::Raw;
use super::redis::Redis;
use super::system::System;
use super::zookeeper::ZooKeeper;

pub(super) enum One {
    Raw(Raw),
    Redis(Redis),
    Etcd(Box<Etcd>),
    ZooKeeper(ZooKeeper),
    Quorate(Pool, Option<Grant>),
}

impl One {
    /// Of a system that is not ours.
    pub(super) async fn connect(
        system: System,
        address: SocketAddr,
        number: usize,
    ) -> anyhow::Result<One> {
        Ok(match system {
            System::Raw => One::Raw(Raw::connect(address).await?),
            System::Zookeeper => One::ZooKeeper(ZooKeeper::connect(address, number).await?),
            System::Etcd | System::EtcdTxn => {
                let bare = system == System::EtcdTxn;
                One::Etcd(Box::new(Etcd::connect(address, number, bare).await?))
            }
            _ => One::Redis(Redis::connect(address, number, system == System::RedisDel).await?),
        })
    }

    pub(super) async fn acquire(&mut self) -> anyhow::Result<()> {
        match self {
            One::Raw(raw) => raw.exchange().await,
            One::Redis(redis) => redis.acquire().await,
            One::Etcd(etcd) => etcd.acquire().await,
            One::ZooKeeper(it) => it.acquire().await,
            One::Quorate(pool, grant) => {
                *grant = Some(pool.acquire().await?);
                Ok(())
            }
        }
    }

    /// Returns when it is acknowledged.
    pub(super) async fn release(&mut self) -> anyhow::Result<()> {
        match self {
            One::Raw(raw) => raw.exchange().await,
            One::Redis(redis) => redis.release().await,
            One::Etcd(etcd) => etcd.release().await,
            One::ZooKeeper(it) => it.release().await,
            One::Quorate(_, grant) => {
                Ok(grant.take().context("what was not acquired is not held")?.release().await?)
            }
        }
    }

    /// Goes round until the window is over; how many nanoseconds each acquire took.
    pub(super) async fn run(mut self, window: Window) -> anyhow::Result<Vec<u64>> {
        let mut spans = Vec::new();
        loop {
            let began = Instant::now();
            self.acquire().await?;
            let granted = Instant::now();
            self.release().await?;
            if window.is_over() {
                return Ok(spans);
            }
            if window.counts(began) {
                spans.push((granted - began).as_nanos() as u64);
            }
        }
    }
}
