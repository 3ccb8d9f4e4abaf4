//! Fault injection and sweeps: many runs of one launch, each with one change to the machine's state.
//!
//! A [`Campaign`] is a file: a launch, which faults, how many. It is divided into [`Shard`]s, each of which becomes one
//! Parquet file, whose bytes depend on the campaign and on nothing else: not on the order of the shards, nor on which
//! process or how many threads run them.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use reconverge_campaign::Campaign;
//!
//! let campaign = Campaign::open(Path::new("campaign.toml"))?;
//! let folder = Path::new("results");
//! for shard in campaign.missing(folder)? {
//!     campaign.run_shard(&shard, folder)?;
//! }
//! println!("{}", serde_json::to_string(&campaign.summary(folder)?)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

/// Why a campaign cannot go on.
#[derive(Debug, Error)]
pub enum Error {
    /// The campaign file is wrong.
    #[error("{file}: {message}")]
    Campaign {
        /// The file.
        file: String,
        /// Line, key, what is wrong, what would fit.
        message: String,
    },
    /// A file that cannot be read or written. What was finished stays.
    #[error("{file}: {why}")]
    File {
        /// The file.
        file: String,
        /// Why, and the remedy.
        why: String,
    },
    /// The folder has results of another campaign, or of another version.
    #[error("{file}: {why}")]
    Folder {
        /// The file in it.
        file: String,
        /// Whose it is, and the remedy.
        why: String,
    },
    /// The launch cannot run, or its golden run traps.
    #[error(transparent)]
    Launch(#[from] reconverge_workbench::request::Error),
}

/// A range of experiments whose results are one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shard {
    /// Its number, from 0 on.
    pub index: usize,
    /// The experiments.
    pub range: Range<u64>,
    name: String,
}

impl Shard {
    /// The name of its file: the hash of program, data and campaign, then the shard's number.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What [`Campaign::describe`] gives.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// The hash of program, data and campaign: 32 hexadecimal digits.
    pub campaign: String,
    /// The version of the program that runs it.
    pub version: String,
    /// Experiments altogether.
    pub injections: u64,
    /// Experiments of a shard.
    pub shard_size: u64,
    /// Shards.
    pub shards: usize,
}

/// What [`Campaign::summary`] gives.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Experiments of the campaign.
    pub injections: u64,
    /// Experiments whose shard is there.
    pub finished: u64,
}

/// What [`Campaign::recheck`] gives.
#[derive(Clone, Debug, Serialize)]
pub struct Recheck {
    /// Experiments that were run again on the reference engine.
    pub checked: u64,
    /// Those that gave something else, in words.
    pub differ: Vec<String>,
}

/// A campaign that is ready to run. It is `Send` and `Sync`: threads may run its shards at the same time.
pub struct Campaign {
    description: Description,
}

impl Campaign {
    /// Reads a campaign file and the files that it names, runs the launch without a fault, and looks where faults can be.
    ///
    /// # Errors
    /// A file that is wrong or not there, a site that the program never has, a launch that does not run.
    pub fn open(path: &Path) -> Result<Campaign, Error> {
        Err(Error::Campaign { file: path.display().to_string(), message: "campaigns do not run yet".to_owned() })
    }

    /// The golden run, the profile, the sample size.
    pub fn describe(&self) -> &Description {
        &self.description
    }

    /// The shards, in order.
    pub fn shards(&self) -> Vec<Shard> {
        Vec::new()
    }

    /// The shards whose file is not in a folder. A folder that is not there has none.
    ///
    /// # Errors
    /// A folder that cannot be read, or has results of another campaign or version.
    pub fn missing(&self, _folder: &Path) -> Result<Vec<Shard>, Error> {
        Ok(self.shards())
    }

    /// Runs the experiments of a shard and writes its file, whole or not at all. Several processes may do so at once,
    /// of the same shard too. Gives the file's path.
    ///
    /// # Errors
    /// The file cannot be written; shards that are there stay.
    pub fn run_shard(&self, shard: &Shard, folder: &Path) -> Result<PathBuf, Error> {
        Ok(folder.join(shard.name()))
    }

    /// Counts by site and outcome of the shards that a folder has.
    ///
    /// # Errors
    /// Those of [`Campaign::missing`], and shards that cannot be read.
    pub fn summary(&self, _folder: &Path) -> Result<Summary, Error> {
        Ok(Summary { injections: self.description.injections, finished: 0 })
    }

    /// Runs `count` experiments of the shards that a folder has again, on the reference engine, and compares. `seed` chooses
    /// them.
    ///
    /// # Errors
    /// Those of [`Campaign::summary`].
    pub fn recheck(&self, _folder: &Path, _count: u64, _seed: u64) -> Result<Recheck, Error> {
        Ok(Recheck { checked: 0, differ: Vec::new() })
    }
}
