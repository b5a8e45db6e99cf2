//! The control plane, driven by hand: members in one process, a network and disks of our own, and
//! a clock that only moves when everybody waits for it.

mod cluster;
mod council;
mod crash;
mod disk;
mod files;
mod net;
mod storage;
mod strangers;
mod survivor;
mod wire;
