//! Campaigns: see `reconverge/campaign.py`.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use reconverge_campaign::{Error, Shard};
use serde_json::json;

use crate::errors;

/// A campaign that is ready to run.
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Campaign(reconverge_campaign::Campaign);

fn raised(error: Error) -> PyErr {
    match error {
        Error::Launch(error) => errors::run(error),
        other => errors::wrong(other),
    }
}

impl Campaign {
    fn shard(&self, number: usize) -> PyResult<Shard> {
        let mut shards = self.0.shards();
        if number >= shards.len() {
            return Err(errors::wrong(format!("shard {number}: there are {}, from 0 on", shards.len())));
        }
        Ok(shards.swap_remove(number))
    }
}

#[pymethods]
impl Campaign {
    #[new]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Campaign> {
        py.detach(|| reconverge_campaign::Campaign::open(&path)).map(Campaign).map_err(raised)
    }

    /// The golden run, the profile, the sample size, as JSON.
    fn describe(&self) -> String {
        json!(self.0.describe()).to_string()
    }

    /// The version that reads the campaign, and the campaign's hash.
    fn names(&self) -> (&str, &str) {
        let description = self.0.describe();
        (&description.version, &description.campaign)
    }

    /// The names of the shards' files, in order.
    fn shards(&self) -> Vec<String> {
        self.0.shards().iter().map(|shard| shard.name().to_owned()).collect()
    }

    /// The numbers of the shards that a folder does not have.
    fn missing(&self, folder: PathBuf) -> PyResult<Vec<usize>> {
        let missing = self.0.missing(&folder).map_err(raised)?;
        Ok(missing.iter().map(|shard| shard.index).collect())
    }

    /// Runs the experiments of a shard, and gives the path of its file.
    fn run_shard(&self, py: Python<'_>, number: usize, folder: PathBuf) -> PyResult<String> {
        let shard = self.shard(number)?;
        let path = py.detach(|| self.0.run_shard(&shard, &folder)).map_err(raised)?;
        Ok(path.display().to_string())
    }

    /// Counts by site and outcome, as JSON.
    fn summary(&self, py: Python<'_>, folder: PathBuf) -> PyResult<String> {
        let summary = py.detach(|| self.0.summary(&folder)).map_err(raised)?;
        Ok(json!(summary).to_string())
    }

    /// Experiments run again on the reference engine, as JSON.
    fn recheck(&self, py: Python<'_>, folder: PathBuf, count: u64, seed: u64) -> PyResult<String> {
        let folder: &Path = &folder;
        let checked = py.detach(|| self.0.recheck(folder, count, seed)).map_err(raised)?;
        Ok(json!(checked).to_string())
    }
}
