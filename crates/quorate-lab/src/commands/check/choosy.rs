//! Claims that choose among units, and holders that can be asked to move.

use std::sync::Arc;

use anyhow::{Context, ensure};
use quorate_check::ClientPlan;
use quorate_core::{Line, Unit};
use quorate_protocols::allocator::labels::Labels;

use super::{Args, Home};

/// What claims choose.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Choosy {
    /// Which units will do for each claim, counted from 0: 0+1,0 are two claims, of which the first
    /// may have either unit (central, table)
    #[arg(long, value_name = "UNITS,...", value_delimiter = ',', value_parser = units)]
    among: Vec<Among>,
    /// Claims whose holders can be asked to move, counted from 1 (central)
    #[arg(long, value_name = "CLAIM,...", value_delimiter = ',', requires = "among")]
    movable: Vec<usize>,
}

type Among = Arc<[Unit]>;

fn units(text: &str) -> Result<Among, String> {
    let units: Result<Vec<u32>, _> = text.split('+').map(str::parse).collect();
    let mut units = units.map_err(|_| "say units, such as 0+1".to_owned())?;
    units.sort_unstable();
    units.dedup();
    Ok(units.into_iter().map(Unit).collect())
}

impl Choosy {
    /// Whether any claim does.
    pub(super) fn any(&self) -> bool {
        !self.among.is_empty()
    }

    /// Whether a holder can be asked to move.
    pub(super) fn moves(&self) -> bool {
        !self.movable.is_empty()
    }

    /// Units that have names and no labels: claims here name the units.
    pub(super) fn labels(&self, units: u32) -> Option<Arc<Labels>> {
        let unit = |unit: u32| (format!("u{unit}"), Default::default());
        self.any().then(|| Arc::new(Labels::new((0..units).map(unit).collect())))
    }

    /// # Errors
    /// It does not fit the rest.
    pub(super) fn fit(&self, args: &Args) -> anyhow::Result<()> {
        if !self.any() {
            return Ok(());
        }
        let (given, claims) = (self.among.len(), args.want.len());
        ensure!(claims == given, "--among is for {given} claims: say the size of each with --want");
        // Claims of one size at nodes that are alike differ now.
        ensure!(args.home != Home::Any, "--among goes with --home spread, or with a list");
        let mut all = self.among.iter().flat_map(|among| among.iter());
        if let Some(unit) = all.find(|unit| unit.0 >= args.units) {
            anyhow::bail!("--among: there is no {unit}: units count from 0 to {}", args.units - 1);
        }
        for (claim, (among, h)) in (1..).zip(self.among.iter().zip(&args.want)) {
            let there = among.len();
            ensure!(there as u32 >= *h, "claim {claim} asks for {h} units among {there}");
        }
        for claim in &self.movable {
            ensure!(
                (1..=claims).contains(claim),
                "--movable {claim}: claims count from 1 to {claims}"
            );
        }
        Ok(())
    }

    /// Tells the claims of a world.
    pub(super) fn tell(&self, clients: &mut [ClientPlan]) -> anyhow::Result<()> {
        for (plan, among) in clients.iter_mut().zip(&self.among) {
            plan.claim.wanted.lines =
                Some([Line::of(plan.claim.wanted.units, Arc::clone(among))].into());
        }
        for claim in &self.movable {
            clients.get_mut(claim - 1).context("no such claim")?.claim.wanted.movable = true;
        }
        Ok(())
    }
}

/// What a claim asks for: `2 among 0+1+2, movable`.
pub(super) fn describe(plan: &ClientPlan) -> String {
    let lines = plan.claim.wanted.lines.iter().flat_map(|lines| lines.iter());
    let among = lines.map(|line| {
        let units: Vec<String> = line.among.iter().map(|unit| unit.0.to_string()).collect();
        format!(" among {}", units.join("+"))
    });
    let movable = if plan.claim.wanted.movable { ", movable" } else { "" };
    format!("{}{}{movable}", plan.claim.wanted.units, among.collect::<String>())
}
