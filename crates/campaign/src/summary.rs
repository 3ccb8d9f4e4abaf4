//! Counts by site and outcome, with confidence intervals.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::estimate::wilson;
use crate::experiment::{Outcome, Record};
use crate::site::{Model, Site};

/// The number and the rate of the experiments with one outcome. The rate refers to all experiments of a point, site and
/// model.
#[derive(Clone, Debug, Serialize)]
pub struct Rate {
    /// The outcome.
    pub outcome: &'static str,
    /// Number of experiments with the outcome.
    pub count: u64,
    /// The rate of the outcome: `count` divided by the number of all experiments of this point, site and model.
    pub rate: f64,
    /// The Wilson interval of `rate`.
    pub interval: [f64; 2],
}

/// The number and the rate of the experiments with one class. The rate refers to all experiments of a point, site and
/// model. A class is a name that an outcome function returns.
#[derive(Clone, Debug, Serialize)]
pub struct ClassRate {
    /// The name that the outcome function returned.
    pub class: String,
    /// The number of experiments with the class.
    pub count: u64,
    /// The rate of the class: `count` divided by the number of all experiments of this point, site and model.
    pub rate: f64,
    /// The Wilson interval of `rate`.
    pub interval: [f64; 2],
}

/// The experiments of a point, site and model.
#[derive(Clone, Debug, Serialize)]
pub struct Counts {
    /// The point.
    pub point: u32,
    /// The site.
    pub site: Site,
    /// The fault model. The model is absent if the counts are sums over all models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// Number of experiments.
    pub injections: u64,
    /// Rates of all outcomes.
    pub outcomes: Vec<Rate>,
    /// Rates of the names that the outcome function returned. The list is empty if the campaign does not have an
    /// outcome function.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassRate>,
    /// Number of traps by name.
    pub traps: BTreeMap<String, u64>,
    /// The largest error of an SDC. This error is absent if no experiment is an SDC, if an output is not a number, or
    /// if an expected value is not a number.
    pub largest_error: Option<f64>,
}

/// The result of [`Campaign::summary`](crate::Campaign::summary).
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The hash of program, data and campaign.
    pub campaign: String,
    /// Number of experiments in the campaign.
    pub injections: u64,
    /// Number of experiments that belong to finished shards.
    pub finished: u64,
    /// Number of shards in the campaign.
    pub shards: usize,
    /// Number of shards that have no file in the folder.
    pub missing: usize,
    /// Probability that a Wilson interval contains the true rate.
    pub confidence: f64,
    /// Counts by point and site.
    pub sites: Vec<Counts>,
    /// Counts by point, site and model. The list is empty if the campaign has a single model.
    pub models: Vec<Counts>,
}

#[derive(Default)]
struct Tally {
    outcomes: BTreeMap<Outcome, u64>,
    classes: BTreeMap<String, u64>,
    traps: BTreeMap<String, u64>,
    largest: Option<f64>,
}

impl Tally {
    fn add(&mut self, record: &Record) {
        *self.outcomes.entry(record.outcome).or_default() += 1;
        if let Some(class) = &record.class {
            *self.classes.entry(class.clone()).or_default() += 1;
        }
        if let Some(trap) = &record.trap {
            *self.traps.entry(trap.clone()).or_default() += 1;
        }
        if let Some(error) = record.error {
            self.largest = Some(self.largest.map_or(error, |largest| largest.max(error)));
        }
    }

    fn counts(self, (point, site, model): (u32, Site, Option<Model>), confidence: f64) -> Counts {
        let injections = self.outcomes.values().sum();
        let rate = |outcome: Outcome| {
            let count = self.outcomes.get(&outcome).copied().unwrap_or(0);
            let rate = count as f64 / injections as f64;
            Rate { outcome: outcome.name(), count, rate, interval: wilson(count, injections, confidence) }
        };
        let outcomes = Outcome::ALL.map(rate).to_vec();
        let class = |(class, count): (String, u64)| {
            let interval = wilson(count, injections, confidence);
            ClassRate { class, count, rate: count as f64 / injections as f64, interval }
        };
        let classes = self.classes.into_iter().map(class).collect();
        let largest_error = self.largest.filter(|largest| largest.is_finite());
        Counts { point, site, model, injections, outcomes, classes, traps: self.traps, largest_error }
    }
}

/// Sums over the experiments that were read so far.
#[derive(Default)]
pub(crate) struct Tallies {
    sites: BTreeMap<(u32, Site), Tally>,
    models: BTreeMap<(u32, Site, Model), Tally>,
    /// Number of experiments.
    pub(crate) count: u64,
}

impl Tallies {
    pub(crate) fn add(&mut self, record: &Record) {
        let Record { point, site, model, .. } = *record;
        self.sites.entry((point, site)).or_default().add(record);
        self.models.entry((point, site, model)).or_default().add(record);
        self.count += 1;
    }

    /// Returns counts by site. If `by_model` is set, also returns counts by site and model.
    pub(crate) fn counts(self, confidence: f64, by_model: bool) -> (Vec<Counts>, Vec<Counts>) {
        let sites = self.sites.into_iter();
        let sites = sites.map(|((point, site), tally)| tally.counts((point, site, None), confidence));
        let models = self.models.into_iter().filter(|_| by_model);
        let models =
            models.map(|((point, site, model), tally)| tally.counts((point, site, Some(model)), confidence));
        (sites.collect(), models.collect())
    }
}
