//! Campaigns: see `reconverge/campaign.py`.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use reconverge_campaign::{Error, Shard, Taken};
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

    /// The numbers of the shards to run in a folder, and a message for each damaged file.
    fn state(&self, py: Python<'_>, folder: PathBuf) -> PyResult<(Vec<usize>, Vec<String>)> {
        let state = py.detach(|| self.0.state(&folder)).map_err(raised)?;
        let damaged = state.damaged.iter().map(|it| format!("{}: damaged: {}", it.file.display(), it.why));
        Ok((state.missing.iter().map(|shard| shard.index).collect(), damaged.collect()))
    }

    /// Runs the experiments of a shard, unless its file exists, and returns the path of its file; `None` if another process
    /// runs the shard.
    fn take_shard(&self, py: Python<'_>, number: usize, folder: PathBuf) -> PyResult<Option<String>> {
        let shard = self.shard(number)?;
        let taken = py.detach(|| self.0.take_shard_while(&shard, &folder, &|| true)).map_err(raised)?;
        Ok(match taken {
            Taken::Ran(path) | Taken::Finished(path) => Some(path.display().to_string()),
            Taken::Elsewhere(_) | Taken::Stopped => None,
        })
    }

    /// The bytes of a shard's file, checked.
    fn shard_bytes<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        folder: PathBuf,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let shard = self.shard(number)?;
        let bytes = py.detach(|| self.0.shard_bytes(&shard, &folder)).map_err(raised)?;
        Ok(PyBytes::new(py, &bytes))
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
