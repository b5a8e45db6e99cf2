//! Whole clusters in one process, on loopback sockets. One test program: each would be linked with
//! all that a node is made of.

mod claims_over_http;
mod claims_with_labels;
mod client_link;
mod common;
mod crowds;
mod encrypted;
mod every_protocol;
mod first_moments;
mod leases_and_restarts;
mod links_that_break;
mod made_up_fences;
mod nonsense_and_limits;
mod numbered_grants;
mod one_claim;
mod operators_view;
mod orders;
mod rights;
mod ring_heals;
mod second_starts;
mod standing;
mod watching;
mod what_can_be_granted;
mod what_is_counted;
