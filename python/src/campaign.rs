//! Campaigns of the native module. `reconverge/campaign.py` has the classes that users see.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use reconverge_campaign::experiment::{EndedExperiment, Record};
use reconverge_campaign::{Error, Shard, Taken};
use reconverge_workbench::array::Array;
use serde_json::json;

use crate::array::to_numpy;
use crate::errors;

/// A campaign that is ready to run.
#[pyclass(frozen, module = "reconverge._native")]
pub(crate) struct Campaign {
    campaign: reconverge_campaign::Campaign,
    named: Option<Arc<OutcomeFunction>>,
}

/// An outcome function that is written in Python.
struct OutcomeFunction {
    function: Py<PyAny>,
    /// The most recently used point, and the outputs of the golden run of this point.
    golden: Mutex<Option<(u32, Py<PyDict>)>>,
    /// The exception that the outcome function raised.
    failed: Mutex<Option<PyErr>>,
}

/// Returns outputs by name.
fn outputs<'py>(py: Python<'py>, outputs: &[(String, Array)]) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    for (name, array) in outputs {
        named.set_item(name, to_numpy(py, array.clone())?)?;
    }
    Ok(named)
}

/// Returns an experiment as a dict. The keys are the column names of results.
fn dict<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("index", record.index)?;
    row.set_item("point", record.point)?;
    row.set_item("site", record.site.name())?;
    row.set_item("model", record.model.name())?;
    row.set_item("step", record.step)?;
    row.set_item("group", record.group)?;
    row.set_item("pc", record.pc)?;
    row.set_item("lane", record.lane)?;
    row.set_item("place", &record.place)?;
    row.set_item("before", record.before)?;
    row.set_item("after", record.after)?;
    row.set_item("outcome", record.outcome.name())?;
    row.set_item("trap", record.trap.as_deref())?;
    row.set_item("flow_step", record.flow_step)?;
    row.set_item("error", record.error)?;
    row.set_item("hits", record.hits)?;
    row.set_item("class", record.class.as_deref())?;
    Ok(row)
}

impl OutcomeFunction {
    /// Returns the golden outputs of a point.
    fn golden<'py>(&self, py: Python<'py>, ended: &EndedExperiment<'_>) -> PyResult<Bound<'py, PyDict>> {
        let point = ended.record.point;
        // The lock is released before Python allocates anything, because an allocation may run arbitrary code.
        let known = self
            .golden
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .and_then(|(known, golden)| (*known == point).then(|| golden.clone_ref(py)));
        if let Some(golden) = known {
            return Ok(golden.into_bound(py));
        }
        let golden = outputs(py, ended.golden)?;
        let kept = golden.clone().unbind();
        let before = self.golden.lock().unwrap_or_else(PoisonError::into_inner).replace((point, kept));
        drop(before);
        Ok(golden)
    }

    fn call(&self, py: Python<'_>, ended: &EndedExperiment<'_>) -> PyResult<String> {
        let left = ended.outputs.map(|left| outputs(py, left)).transpose()?;
        let arguments = (dict(py, ended.record)?, left, self.golden(py, ended)?);
        let named = self.function.bind(py).call1(arguments)?;
        match named.cast::<PyString>() {
            Ok(name) => Ok(name.to_string()),
            Err(_) => Err(errors::wrong(format!(
                "classify: expected a str from the function, found {}",
                named.get_type().name()?
            ))),
        }
    }

    /// Calls the outcome function. Returns the name of the outcome.
    fn name(&self, ended: EndedExperiment<'_>) -> Result<String, String> {
        Python::attach(|py| self.call(py, &ended)).map_err(|error| {
            let message = error.to_string();
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            message
        })
    }
}

fn raised(error: Error) -> PyErr {
    match error {
        Error::Launch(error) => errors::run(error),
        other => errors::wrong(other),
    }
}

impl Campaign {
    /// Returns the exception for an error. If the outcome function raised an exception, returns the exception of the
    /// outcome function.
    fn failed(&self, error: Error) -> PyErr {
        let own = self.named.as_ref().and_then(|named| {
            let mut failed = named.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.take()
        });
        own.unwrap_or_else(|| raised(error))
    }

    fn shard(&self, number: usize) -> PyResult<Shard> {
        let mut shards = self.campaign.shards();
        if number >= shards.len() {
            return Err(errors::wrong(format!(
                "shard {number}: the campaign has {} shards, numbered from 0",
                shards.len()
            )));
        }
        Ok(shards.swap_remove(number))
    }
}

#[pymethods]
impl Campaign {
    /// Opens a campaign. `classify` returns the name of an outcome. The arguments of `classify` are an experiment, the
    /// outputs of the experiment (`None` after a trap) and the golden outputs. The campaign's hash includes `name`,
    /// because the hash cannot include the function.
    #[new]
    #[pyo3(signature = (path, name=None, classify=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        name: Option<&str>,
        classify: Option<Py<PyAny>>,
    ) -> PyResult<Campaign> {
        let named = classify.map(|function| {
            Arc::new(OutcomeFunction { function, golden: Mutex::default(), failed: Mutex::default() })
        });
        let opened = py.detach(|| {
            let campaign = reconverge_campaign::Campaign::open(&path)?;
            match named.clone() {
                None => Ok(campaign),
                Some(named) => campaign
                    .with_outcomes(name.unwrap_or("classify"), Arc::new(move |ended| named.name(ended))),
            }
        });
        Ok(Campaign { campaign: opened.map_err(raised)?, named })
    }

    /// Returns the experiments of a shard. The function reads the experiments from the shard's file in a folder.
    fn records<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        folder: PathBuf,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let shard = self.shard(number)?;
        let records = py.detach(|| self.campaign.records(&shard, &folder)).map_err(raised)?;
        records.iter().map(|record| dict(py, record)).collect()
    }

    /// Returns the number of a shard's experiments for each outcome.
    fn outcomes(&self, py: Python<'_>, number: usize, folder: PathBuf) -> PyResult<BTreeMap<String, u64>> {
        let shard = self.shard(number)?;
        let records = py.detach(|| self.campaign.records(&shard, &folder)).map_err(raised)?;
        let mut counts = BTreeMap::new();
        for record in records {
            let name = record.class.unwrap_or_else(|| record.outcome.name().to_owned());
            *counts.entry(name).or_default() += 1;
        }
        Ok(counts)
    }

    /// Returns the golden runs, the profiles of the sites and the sample size, as JSON.
    fn describe(&self) -> String {
        json!(self.campaign.describe()).to_string()
    }

    /// Returns the version of this crate, and the hash of the campaign.
    fn names(&self) -> (&str, &str) {
        let description = self.campaign.describe();
        (&description.version, &description.campaign)
    }

    /// Returns the names of the shards' files, in order.
    fn shards(&self) -> Vec<String> {
        self.campaign.shards().iter().map(|shard| shard.name().to_owned()).collect()
    }

    /// Returns the numbers of the shards that must run in a folder, and a message for each damaged file.
    fn state(&self, py: Python<'_>, folder: PathBuf) -> PyResult<(Vec<usize>, Vec<String>)> {
        let state = py.detach(|| self.campaign.state(&folder)).map_err(raised)?;
        let damaged = state.damaged.iter().map(|it| format!("{}: damaged: {}", it.file.display(), it.why));
        Ok((state.missing.iter().map(|shard| shard.index).collect(), damaged.collect()))
    }

    /// Runs the experiments of a shard, unless the shard's file exists. Returns the path of the file, or `None` if
    /// another process runs the shard.
    fn take_shard(&self, py: Python<'_>, number: usize, folder: PathBuf) -> PyResult<Option<String>> {
        let shard = self.shard(number)?;
        let taken = py.detach(|| self.campaign.take_shard_while(&shard, &folder, &|| true));
        let taken = taken.map_err(|error| self.failed(error))?;
        Ok(match taken {
            Taken::Ran(path) | Taken::Finished(path) => Some(path.display().to_string()),
            Taken::Elsewhere(_) | Taken::Stopped => None,
        })
    }

    /// Returns the bytes of a shard's file if the file passes all checks.
    fn shard_bytes<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        folder: PathBuf,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let shard = self.shard(number)?;
        let bytes = py.detach(|| self.campaign.shard_bytes(&shard, &folder)).map_err(raised)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns counts by site and outcome, as JSON.
    fn summary(&self, py: Python<'_>, folder: PathBuf) -> PyResult<String> {
        let summary = py.detach(|| self.campaign.summary(&folder)).map_err(raised)?;
        Ok(json!(summary).to_string())
    }

    /// Runs experiments again on the reference engine. Returns a comparison of the new results with the stored results,
    /// as JSON.
    fn recheck(&self, py: Python<'_>, folder: PathBuf, count: u64, seed: u64) -> PyResult<String> {
        let folder: &Path = &folder;
        let checked =
            py.detach(|| self.campaign.recheck(folder, count, seed)).map_err(|error| self.failed(error))?;
        Ok(json!(checked).to_string())
    }
}
