//! Fault injection and sweeps. Fault injection runs a launch many times. Each run has one change to the machine's
//! state. A sweep runs a launch with many combinations of parameters. One campaign can inject faults and sweep
//! parameters.
//!
//! A campaign file names a launch, the faults, and the number of faults. [`Campaign`] is the opened file. A campaign is
//! divided into [`Shard`]s. The results of each shard are one Parquet file. The bytes of this file depend only on the
//! campaign. The processes, the number of threads and the order of the shards do not change the bytes.
//!
//! * [`mod@file`] has the campaign file. [`filter`] has the filter of a campaign file. [`listed`] has the faults that a
//!   campaign file lists one by one. `source` has the files that a campaign file names, and a hash of these files.
//! * [`site`] has sites and fault models. `spot` has the word that a fault changes. `choice` chooses this word.
//! * `point` has a launch, the golden run of the launch, the steps at which sites exist, and the snapshots at which
//!   experiments start.
//! * [`experiment`] has one change and the outcome of this change. [`replay`] repeats one experiment for inspection.
//! * [`work`] runs shards on threads.
//! * `table` writes and reads shards, which are Parquet files with a checksum. `claim` divides shards among processes.
//! * [`summary`] has counts of outcomes. [`estimate`] computes the confidence intervals of the counts.
//!
//! The results of a campaign are files, so this crate reads and writes files.
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

#![forbid(unsafe_code)]

mod choice;
mod claim;
pub mod estimate;
pub mod experiment;
pub mod file;
pub mod filter;
pub mod listed;
mod lists;
mod point;
pub mod replay;
pub mod site;
mod source;
mod spot;
pub mod summary;
mod table;
pub mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use reconverge_isa::Isa;
use reconverge_output::Whole;
use reconverge_simt::Engine;
use reconverge_simt::random::Random;
use reconverge_workbench::Opened;
use reconverge_workbench::keys::{line_of, plain};
use reconverge_workbench::launch::LaunchFile;
use serde::Serialize;
use thiserror::Error;

use claim::Attempt;
use estimate::sample_size;
use experiment::{Classify, Experiment, Record, impossible};
use file::{CampaignFile, MOST_INJECTIONS};
use listed::{ListedFault, PlacedFault};
use point::{Point, Source};
use replay::Replay;
use site::{Model, Site};
use source::{PointLaunch, Sources, hash};
pub use summary::Summary;
use summary::Tallies;
use table::{CAMPAIGN, Damage, EXPERIMENTS, VERSION};
pub use work::Progress;

/// Version of results. The text has two parts: the version of the package, and the version of the procedure that
/// derives faults from a seed. Results can be compared if their versions are equal.
const RELEASE: &str = concat!(env!("CARGO_PKG_VERSION"), "+3");

/// An error that stops a campaign.
#[derive(Debug, Error)]
pub enum Error {
    /// A file of the campaign is invalid, or requests something impossible.
    #[error("{file}: {message}")]
    Campaign {
        /// The file.
        file: String,
        /// The message. The message states the line, the key, the problem, and the values that are allowed.
        message: String,
    },
    /// A file cannot be read or written. Finished shards remain in the folder.
    #[error("{file}: {why}")]
    File {
        /// The file.
        file: String,
        /// The reason, and the remedy.
        why: String,
    },
    /// The folder has results of another campaign, or of another version.
    #[error("{file}: {why}")]
    Folder {
        /// The file in the folder.
        file: String,
        /// The campaign or version to which the file belongs, and the remedy.
        why: String,
    },
    /// An experiment cannot run, because of a bug in an engine.
    #[error(transparent)]
    Launch(#[from] reconverge_workbench::Error),
}

impl Error {
    fn file(path: &Path, why: impl ToString) -> Error {
        Error::File { file: path.display().to_string(), why: why.to_string() }
    }
}

/// A range of experiments. The results of these experiments are one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shard {
    /// Number of the shard, from 0.
    pub index: usize,
    /// Numbers of the experiments.
    pub range: Range<u64>,
    name: String,
}

impl Shard {
    /// Returns the name of the shard's file. The name has two parts. The first part is the hash of program, data and
    /// campaign. The second part is the number of the shard.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A damaged file. The file has the name of a shard, but does not contain the results of the shard.
#[derive(Clone, Debug)]
pub struct Damaged {
    /// The shard.
    pub shard: Shard,
    /// The file.
    pub file: PathBuf,
    /// Description of the damage.
    pub why: String,
}

/// The state of a folder of results.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The shards that must run. Shards with a damaged file are included.
    pub missing: Vec<Shard>,
    /// The damaged files.
    pub damaged: Vec<Damaged>,
}

/// The result of [`Campaign::take_shard_while`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// This call ran the shard and wrote this file.
    Ran(PathBuf),
    /// The shard was already finished. This file has the results of the shard.
    Finished(PathBuf),
    /// Another process runs the shard. The field is a text that names this process for the user.
    Elsewhere(String),
    /// The caller stopped the run of the shard before the end of the run.
    Stopped,
}

/// The steps of the golden run at which a site exists.
#[derive(Clone, Debug, Serialize)]
pub struct SiteProfile {
    /// The site.
    pub site: Site,
    /// Number of steps of the golden run at which the site exists. The step of a fault is one of these steps.
    pub instants: u64,
}

/// One launch of a campaign, and the run of this launch without a fault.
#[derive(Clone, Debug, Serialize)]
pub struct PointDescription {
    /// The keys that the sweep sets, and the values of these keys.
    pub parameters: BTreeMap<String, String>,
    /// The machine.
    pub isa: String,
    /// The chip, if the campaign, the launch or the program states a chip.
    pub chip: Option<String>,
    /// `strict` or `lenient`.
    pub mode: String,
    /// Number of groups of lanes.
    pub groups: usize,
    /// Number of instructions issued to groups.
    pub instructions: u64,
    /// Number of instructions executed, summed over the active lanes.
    pub lane_instructions: u64,
    /// Number of branch decisions that split the active lanes of a group.
    pub divergent_branches: u64,
    /// Number of instructions after which a group is treated as hanging. On Tesla, the number applies to a block.
    pub fuel: u64,
    /// A hash of the outputs.
    pub outputs: String,
    /// The sites that exist in the golden run.
    pub sites: Vec<SiteProfile>,
}

/// The result of [`Campaign::describe`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct Description {
    /// The hash of program, data and campaign, with 32 hexadecimal digits.
    pub campaign: String,
    /// The version of the program that runs the campaign.
    pub version: String,
    /// Seed for the choice of steps, words and bits.
    pub seed: u64,
    /// Number of experiments in the campaign.
    pub injections: u64,
    /// Number of experiments per point. The campaign file states this number, or the campaign computes the number from
    /// [`Description::size_of_site`] and the number of sites.
    pub injections_of_point: u64,
    /// Number of experiments per site, if the campaign file states a margin. The confidence and the margin determine
    /// the number.
    pub size_of_site: Option<u64>,
    /// Probability that a measured rate is within the margin of the true rate.
    pub confidence: f64,
    /// Maximum error of the rates, if the campaign file states a margin.
    pub margin: Option<f64>,
    /// The sites of faults.
    pub sites: Vec<Site>,
    /// The fault models.
    pub models: Vec<Model>,
    /// Number of experiments per shard.
    pub shard_size: u64,
    /// Number of shards.
    pub shards: usize,
    /// The launches of the campaign. Without a sweep, the list has a single launch. With a sweep, the list has one
    /// launch per point.
    pub points: Vec<PointDescription>,
}

/// An experiment whose result on the reference engine differs from the stored result.
#[derive(Clone, Debug, Serialize)]
pub struct Disagreement {
    /// Number of the experiment.
    pub index: u64,
    /// The result in the shard.
    pub stored: String,
    /// The result on the reference engine.
    pub reference: String,
}

/// The result of [`Campaign::recheck`].
#[derive(Clone, Debug, Serialize)]
pub struct Recheck {
    /// Number of experiments that the reference engine ran again.
    pub checked: u64,
    /// The experiments whose result on the reference engine differs from the stored result.
    pub differ: Vec<Disagreement>,
}

/// A campaign that is ready to run. `Campaign` is `Send` and `Sync`, so threads may run shards of one campaign at the
/// same time.
pub struct Campaign {
    path: PathBuf,
    file: CampaignFile,
    sources: Sources,
    launches: Vec<PointLaunch>,
    description: Description,
    /// The outcome function, and its name.
    classify: Option<(String, Arc<Classify>)>,
    /// The points that experiments used most recently. The number of points in the list is limited, because a point
    /// needs much memory.
    ready: Mutex<Vec<(usize, Engine, Arc<Point>)>>,
}

/// Maximum number of shards. The number of files in the folder of results must be limited, because every command lists
/// this folder.
const MOST_SHARDS: u64 = 1_000_000;

/// Maximum number of points in `Campaign::ready`.
const READY: usize = 4;

impl Campaign {
    /// Reads a campaign file and the files that the campaign file names. The function then runs each launch without a
    /// fault, and finds the sites.
    ///
    /// # Errors
    /// Fails if a file is invalid or does not exist. Also fails if no site exists during the golden run, or if a launch
    /// does not run.
    pub fn open(path: &Path) -> Result<Campaign, Error> {
        let name = plain(path).display().to_string();
        let wrong = |message: String| placed(&name, message);
        let text = std::fs::read_to_string(path).map_err(|error| Error::file(path, error))?;
        let file = CampaignFile::parse(&text).map_err(wrong)?;
        let of_file = |(file, message): (String, String)| placed(&file, message);
        let mut sources = Sources::read(path, &file).map_err(of_file)?;
        sources.faults = lists::faults_of(path, &file).map_err(of_file)?;
        let launches = sources.launches(&file).map_err(wrong)?;
        let mut campaign = Campaign {
            path: path.to_owned(),
            file,
            sources,
            launches,
            description: Description::default(),
            classify: None,
            ready: Mutex::default(),
        };
        campaign.description = campaign.described()?;
        Ok(campaign)
    }

    /// Returns the campaign with an outcome function. With an outcome function, the results have the column `class`,
    /// and the summary has the field `classes`.
    ///
    /// The campaign's hash includes `name` instead of the function. So the results of functions with different names do
    /// not mix. The function must return the same name for the same experiment in every process.
    ///
    /// # Errors
    /// Returns the errors of [`Campaign::open`].
    pub fn with_outcomes(mut self, name: &str, classify: Arc<Classify>) -> Result<Campaign, Error> {
        self.classify = Some((name.to_owned(), classify));
        self.description = self.described()?;
        Ok(self)
    }

    /// Returns the description of the campaign. The description has the golden runs, the profiles of the sites, and the
    /// sample size.
    pub fn describe(&self) -> &Description {
        &self.description
    }

    /// Returns the shards, in order.
    pub fn shards(&self) -> Vec<Shard> {
        (0..self.description.shards).map(|index| self.shard(index)).collect()
    }

    /// Returns the shards whose file is damaged or does not exist in a folder. The folder does not need to exist.
    ///
    /// # Errors
    /// Fails if the folder cannot be read, or if the folder has results of another campaign or version.
    pub fn missing(&self, folder: &Path) -> Result<Vec<Shard>, Error> {
        Ok(self.state(folder)?.missing)
    }

    /// Returns the shards that are missing in a folder, and the damaged files of the folder. The function checks every
    /// file.
    ///
    /// # Errors
    /// Returns the errors of [`Campaign::missing`].
    pub fn state(&self, folder: &Path) -> Result<State, Error> {
        let present = self.present(folder)?;
        let mut state = State::default();
        for shard in self.shards() {
            match present.contains(&shard.index).then(|| self.checked(&shard, folder)) {
                Some(Ok(_)) => continue,
                Some(Err(damage)) => state.damaged.push(Damaged {
                    shard: shard.clone(),
                    file: folder.join(&shard.name),
                    why: damage.to_string(),
                }),
                None => {}
            }
            state.missing.push(shard);
        }
        Ok(state)
    }

    /// Checks that a shard's file is unchanged, and returns the bytes of the file.
    ///
    /// # Errors
    /// Fails if the file does not exist or is damaged.
    pub fn shard_bytes(&self, shard: &Shard, folder: &Path) -> Result<Bytes, Error> {
        self.checked(shard, folder).map_err(|damage| self.damaged(shard, folder, &damage))
    }

    /// Runs the experiments of a shard and writes the shard's file atomically. Several processes may call this function
    /// at once, even for the same shard. Returns the path of the file.
    ///
    /// # Errors
    /// Fails if the shard belongs to another campaign, or if the file cannot be written. Files of other shards stay
    /// unchanged.
    pub fn run_shard(&self, shard: &Shard, folder: &Path) -> Result<PathBuf, Error> {
        let path = self.run_shard_while(shard, folder, &|| true)?;
        Ok(path.unwrap_or_else(|| folder.join(shard.name())))
    }

    /// Runs a shard like [`Campaign::run_shard`] as long as `go_on` returns `true`. `go_on` is called before each
    /// experiment. If `go_on` returns `false`, this function returns `None` and does not write a file.
    ///
    /// # Errors
    /// Returns the errors of [`Campaign::run_shard`].
    pub fn run_shard_while(
        &self,
        shard: &Shard,
        folder: &Path,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<PathBuf>, Error> {
        if *shard != self.shard(shard.index) || shard.index >= self.description.shards {
            let why = format!(
                "the shard does not belong to the campaign {} of version {RELEASE}; all workers need the same file and \
                 the same version",
                self.path.display()
            );
            return Err(Error::Folder { file: shard.name.clone(), why });
        }
        let mut records = Vec::with_capacity((shard.range.end - shard.range.start) as usize);
        for index in shard.range.clone() {
            if !go_on() {
                return Ok(None);
            }
            records.push(self.experiment(index, Engine::Fast)?);
        }
        self.write(shard, folder, &records).map(Some)
    }

    /// Runs a shard, unless the file of the shard exists or another process runs the shard. Several processes can call
    /// this function for all shards of a folder. The processes then divide the shards among themselves. The processes
    /// may be on one host or on several hosts. If a process ends before its shard is finished, another process runs the
    /// shard.
    ///
    /// # Errors
    /// Returns the errors of [`Campaign::run_shard`].
    pub fn take_shard_while(
        &self,
        shard: &Shard,
        folder: &Path,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Taken, Error> {
        let path = folder.join(&shard.name);
        let is_finished = || self.checked(shard, folder).is_ok();
        if is_finished() {
            return Ok(Taken::Finished(path));
        }
        std::fs::create_dir_all(folder).map_err(|error| unwritten(&path, &error))?;
        match claim::claim(folder, &shard.name).map_err(|error| unwritten(&path, &error))? {
            Attempt::Taken(by) => Ok(Taken::Elsewhere(by)),
            // When this function started, the shard was not finished. In the meantime, another process has finished the
            // shard and has released the claim.
            Attempt::Mine(_) if is_finished() => Ok(Taken::Finished(path)),
            Attempt::Mine(_claim) => {
                Ok(self.run_shard_while(shard, folder, go_on)?.map_or(Taken::Stopped, Taken::Ran))
            }
        }
    }

    /// Returns the experiments of a shard. The function reads the experiments from the shard's file in a folder.
    ///
    /// # Errors
    /// Fails if the file does not exist or is damaged.
    pub fn records(&self, shard: &Shard, folder: &Path) -> Result<Vec<Record>, Error> {
        self.read(shard, folder)
    }

    /// Returns counts of the experiments in a folder's shards, grouped by site and outcome.
    ///
    /// # Errors
    /// Returns the errors of [`Campaign::missing`]. Also fails if a shard is damaged.
    pub fn summary(&self, folder: &Path) -> Result<Summary, Error> {
        let mut tallies = Tallies::default();
        let there = self.present(folder)?;
        for index in &there {
            self.read(&self.shard(*index), folder)?.iter().for_each(|record| tallies.add(record));
        }
        let Description { campaign, injections, shards, confidence, models, .. } = &self.description;
        let finished = tallies.count;
        let (sites, models) = tallies.counts(*confidence, models.len() > 1);
        Ok(Summary {
            campaign: campaign.clone(),
            injections: *injections,
            finished,
            shards: *shards,
            missing: shards - there.len(),
            confidence: *confidence,
            sites,
            models,
        })
    }

    /// Runs `count` experiments again on the reference engine, and compares the results with the stored results. `seed`
    /// determines which experiments of the finished shards run.
    ///
    /// # Errors
    /// Returns the errors of [`Campaign::summary`]. Also fails if the folder has no shards.
    pub fn recheck(&self, folder: &Path, count: u64, seed: u64) -> Result<Recheck, Error> {
        let there: Vec<usize> = self.present(folder)?.into_iter().collect();
        if there.is_empty() {
            return Err(Error::file(folder, "no finished shard to check; run the campaign first"));
        }
        let mut random = Random::new(seed);
        let mut chosen: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        let all: u64 = there.iter().map(|index| self.shard(*index).range).map(|it| it.end - it.start).sum();
        let mut left = count.min(all);
        while left > 0 {
            let shard = there[random.below(there.len() as u32) as usize];
            let Range { start, end } = self.shard(shard).range;
            left -=
                u64::from(chosen.entry(shard).or_default().insert(start + random.next_u64() % (end - start)));
        }
        let mut recheck = Recheck { checked: 0, differ: Vec::new() };
        for (index, experiments) in chosen {
            let shard = self.shard(index);
            let records = self.read(&shard, folder)?;
            for experiment in experiments {
                let stored = &records[(experiment - shard.range.start) as usize];
                let reference = self.experiment(experiment, Engine::Reference)?;
                recheck.checked += 1;
                if *stored != reference {
                    recheck.differ.push(Disagreement {
                        index: experiment,
                        stored: format!("{stored:?}"),
                        reference: format!("{reference:?}"),
                    });
                }
            }
        }
        Ok(recheck)
    }

    /// Runs one experiment on an engine.
    ///
    /// # Errors
    /// Fails if the experiment does not exist, or if an engine has a bug.
    pub fn experiment(&self, index: u64, engine: Engine) -> Result<Record, Error> {
        let experiment = self.numbered(index)?;
        Ok(experiment.run(&*self.point(experiment.point as usize, engine)?)?)
    }

    /// Returns two runs for inspection: one experiment, and the same run without the fault of the experiment.
    ///
    /// # Errors
    /// Fails if the experiment does not exist, or if an engine has a bug.
    pub fn replay(&self, index: u64) -> Result<Replay, Error> {
        let experiment = self.numbered(index)?;
        let point = self.point(experiment.point as usize, Engine::Fast)?;
        let record = experiment.run(&point)?;
        let chosen = experiment.choose(&point)?;
        let (launch, parameters) = &self.launches[experiment.point as usize];
        let source = self.point_source(launch, parameters, Engine::Fast);
        let (program, golden) = source.prepare()?;
        let faulty = replay::with_fault(golden.copy(), &chosen, program);
        Ok(Replay { record, golden, faulty, program: program.clone(), options: point.options })
    }

    /// Returns the program's file. The contents of this file were read when the campaign was opened.
    pub fn opened(&self) -> &Opened {
        &self.sources.opened
    }

    /// Returns the path of the program's file, or `None` for a kernel.
    pub fn program_path(&self) -> Option<&Path> {
        self.sources.path.as_deref()
    }

    /// Returns the name of the program's file or of the kernel. Also returns the source of the program, if the program
    /// has a source.
    pub fn program(&self) -> (&str, Option<&str>) {
        (&self.sources.program, self.sources.text.as_deref())
    }
}

impl Campaign {
    fn wrong(&self, message: String) -> Error {
        placed(&plain(&self.path).display().to_string(), message)
    }

    /// Returns the experiment that has this number.
    fn numbered(&self, index: u64) -> Result<Experiment<'_>, Error> {
        let Description { injections, injections_of_point, sites, models, .. } = &self.description;
        if index >= *injections {
            let last = match injections.checked_sub(1) {
                Some(last) => format!("expected 0 to {last}"),
                None => "the campaign has no experiments".to_owned(),
            };
            return Err(self.wrong(format!("experiment {index} does not exist: {last}")));
        }
        let (point, number) = (index / injections_of_point, index % injections_of_point);
        let listed = self.sources.faults.get(number as usize).map(|entry| &entry.fault);
        // The experiments use the sites and models in rotation, so that every range of experiments contains all sites
        // and models.
        let site = sites[(number % sites.len() as u64) as usize];
        let model = models[(number / sites.len() as u64 % models.len() as u64) as usize];
        Ok(Experiment {
            index,
            seed: self.file.seed,
            point: point as u32,
            site: listed.and_then(|fault| fault.site).unwrap_or(site),
            model: listed.map_or(model, ListedFault::model),
            bits: self.file.bits.unwrap_or(0),
            listed,
            classify: self.classify.as_ref().map(|(_, classify)| &**classify),
        })
    }

    /// Returns the inputs of a point.
    fn point_source<'a>(
        &'a self,
        launch: &'a LaunchFile,
        parameters: &[(String, String)],
        engine: Engine,
    ) -> Source<'a> {
        Source {
            launch,
            opened: &self.sources.opened,
            files: &self.sources.files,
            parameters: parameters.to_vec(),
            fuel: self.file.fuel,
            engine,
            filter: &self.file.filter,
            labels: &self.sources.labels,
        }
    }

    /// Returns the sites that the campaign file names. Returns `None` if the campaign file does not name sites.
    fn stated_sites(&self) -> Option<Vec<Site>> {
        if self.sources.faults.is_empty() {
            return self.file.sites.clone();
        }
        let sites: BTreeSet<Site> = self.sources.faults.iter().filter_map(|entry| entry.fault.site).collect();
        Some(sites.into_iter().collect())
    }

    /// Chooses every fault of the list at a point, but does not run experiments. If a fault is impossible, the error is
    /// reported before the first experiment runs.
    fn check_list(&self, number: usize, point: &Point) -> Result<(), Error> {
        let faults = &self.sources.faults;
        let mut experiments = Vec::with_capacity(faults.len());
        for (place, PlacedFault { fault, .. }) in faults.iter().enumerate() {
            let Some(site) = fault.site else { continue };
            experiments.push(Experiment {
                index: (number * faults.len() + place) as u64,
                seed: self.file.seed,
                point: number as u32,
                site,
                model: fault.model(),
                bits: self.file.bits.unwrap_or(0),
                listed: Some(fault),
                classify: None,
            });
        }
        let wrong = impossible(&experiments, point)?;
        let Some((place, why)) = wrong.first() else { return Ok(()) };
        let keys: Vec<String> =
            point.parameters.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let at = if keys.is_empty() { String::new() } else { format!(" (with {})", keys.join(", ")) };
        let more =
            if wrong.len() > 1 { format!("; {} more are wrong", wrong.len() - 1) } else { String::new() };
        let (file, message) = faults[*place].wrong(&format!("{why}{at}{more}"));
        Err(placed(&file, message))
    }

    fn described(&self) -> Result<Description, Error> {
        let wrong = |message| self.wrong(message);
        let file = &self.file;
        let mut points = Vec::with_capacity(self.launches.len());
        let mut common: Option<Vec<Site>> = None;
        let stated = self.stated_sites();
        for number in 0..self.launches.len() {
            let point = self.point(number, Engine::Fast)?;
            let has: Vec<Site> = point.instants.iter().map(|(site, _)| *site).collect();
            if let Some(site) = stated.iter().flatten().find(|site| !has.contains(site)) {
                return Err(wrong(no_site(*site, &point, &has)));
            }
            self.check_list(number, &point)?;
            common = Some(match common {
                None => has,
                Some(common) => common.into_iter().filter(|site| has.contains(site)).collect(),
            });
            points.push(described(&point));
        }
        let is_filtered = !file.filter.is_empty();
        let sites = stated.or(common).unwrap_or_default();
        let confidence = file.confidence.unwrap_or(0.95);
        let size_of_site = file.margin.map(|margin| sample_size(confidence, margin));
        let of_point = match (self.sources.faults.len() as u64, size_of_site) {
            (0, Some(size)) => size * sites.len() as u64,
            (0, None) => file.injections.unwrap_or(0),
            (listed, _) => listed,
        };
        let injections = of_point.saturating_mul(points.len() as u64);
        if injections > MOST_INJECTIONS {
            return Err(wrong(format!("expected at most {MOST_INJECTIONS} experiments, found {injections}")));
        }
        if sites.is_empty() && injections > 0 {
            let why = if is_filtered {
                "the filter does not select any site for faults"
            } else {
                "the program does not have a site for faults"
            };
            return Err(wrong(why.to_owned()));
        }
        if injections.div_ceil(file.shard) > MOST_SHARDS {
            let shard = injections.div_ceil(MOST_SHARDS);
            return Err(wrong(format!(
                "shard: {} experiments per shard need more than {MOST_SHARDS} files: expected {shard} or more",
                file.shard
            )));
        }
        let canonical = serde_json::to_vec(file).map_err(|error| wrong(error.to_string()))?;
        let mut contents = self.sources.contents();
        let faults: Vec<&ListedFault> = self.sources.faults.iter().map(|entry| &entry.fault).collect();
        contents.push(serde_json::to_vec(&faults).map_err(|error| wrong(error.to_string()))?);
        contents.extend(self.classify.iter().map(|(name, _)| name.clone().into_bytes()));
        let pieces = [RELEASE.as_bytes(), &canonical].into_iter().chain(contents.iter().map(Vec::as_slice));
        Ok(Description {
            campaign: format!("{:032x}", hash(pieces)),
            version: RELEASE.to_owned(),
            seed: file.seed,
            injections,
            injections_of_point: of_point,
            size_of_site,
            confidence,
            margin: file.margin,
            sites,
            models: file.models.clone(),
            shard_size: file.shard,
            shards: injections.div_ceil(file.shard) as usize,
            points,
        })
    }

    /// Returns a point that is ready for experiments.
    fn point(&self, number: usize, engine: Engine) -> Result<Arc<Point>, Error> {
        let known = |ready: &[(usize, Engine, Arc<Point>)]| {
            let found = ready.iter().find(|(known, of, _)| (*known, *of) == (number, engine));
            found.map(|(_, _, point)| point.clone())
        };
        // The lock is held while the point is created. Otherwise, another thread could create the same point at the
        // same time.
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(point) = known(&ready) {
            return Ok(point);
        }
        let (launch, parameters) = &self.launches[number];
        let source = self.point_source(launch, parameters, engine);
        let point = Point::new(&source).map_err(|error| {
            let keys: Vec<String> =
                parameters.iter().map(|(key, value)| format!(" {key} = {value}")).collect();
            self.wrong(format!("the run without a fault{}: {error}", keys.join(",")))
        })?;
        let point = Arc::new(point);
        if ready.len() >= READY {
            ready.remove(0);
        }
        ready.push((number, engine, point.clone()));
        Ok(point)
    }

    fn shard(&self, index: usize) -> Shard {
        let Description { campaign, injections, shard_size, .. } = &self.description;
        let start = index as u64 * shard_size;
        let range = start..(start + shard_size).min(*injections);
        Shard { index, range, name: format!("{campaign}-{index:06}.parquet") }
    }

    /// Returns the numbers of the shards that have a file in a folder.
    fn present(&self, folder: &Path) -> Result<BTreeSet<usize>, Error> {
        let failed = |error: std::io::Error| Error::file(folder, error);
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry.map_err(failed)?.file_name().into_string());
        }
        names.sort_unstable();
        let mut finished = BTreeSet::new();
        for name in names.iter().filter(|name| name.ends_with(".parquet")) {
            let stem = name.strip_suffix(".parquet").and_then(|stem| stem.split_once('-'));
            let number = stem.filter(|(campaign, _)| *campaign == self.description.campaign);
            let number = number.and_then(|(_, number)| number.parse::<usize>().ok());
            match number
                .filter(|number| *number < self.description.shards && self.shard(*number).name == *name)
            {
                Some(number) => finished.insert(number),
                None => return Err(self.foreign(&folder.join(name))),
            };
        }
        Ok(finished)
    }

    /// Returns the error for a file that does not belong to this campaign.
    fn foreign(&self, path: &Path) -> Error {
        let bytes = table::content(path).unwrap_or_default();
        let note = |key| table::note(&bytes, key);
        let why = match (note(CAMPAIGN), note(VERSION)) {
            (Some(_), Some(version)) if version != RELEASE => format!(
                "expected a result of version {RELEASE}, found version {version}; use one version for the whole campaign, or another folder"
            ),
            (Some(campaign), _) => format!(
                "it belongs to another campaign ({campaign}, not {}): the campaign file, the program or its data have changed; \
                 use another folder, or remove the files in this one",
                self.description.campaign
            ),
            _ => "expected a result of a campaign; use a folder that contains only results".to_owned(),
        };
        Error::Folder { file: path.display().to_string(), why }
    }

    /// Reads the records of a shard that exists.
    fn read(&self, shard: &Shard, folder: &Path) -> Result<Vec<Record>, Error> {
        let records = self.checked(shard, folder).and_then(table::records).and_then(|records| {
            let whole = records.iter().map(|record| record.index).eq(shard.range.clone());
            if whole { Ok(records) } else { Err(Damage::Experiments) }
        });
        records.map_err(|damage| self.damaged(shard, folder, &damage))
    }

    /// Returns the bytes of a shard's file if these bytes pass all checks. Every read of a shard uses this function.
    fn checked(&self, shard: &Shard, folder: &Path) -> Result<Bytes, Damage> {
        let bytes = table::read(&folder.join(&shard.name))?;
        let is_ours = table::note(&bytes, CAMPAIGN) == Some(&self.description.campaign)
            && table::note(&bytes, EXPERIMENTS) == Some(&experiments(shard));
        if is_ours { Ok(bytes) } else { Err(Damage::Experiments) }
    }

    fn damaged(&self, shard: &Shard, folder: &Path, damage: &Damage) -> Error {
        let remedy = "the file is damaged; remove it and run the campaign again to write it anew";
        Error::file(&folder.join(&shard.name), format!("{damage}: {remedy}"))
    }

    /// Writes a shard atomically.
    fn write(&self, shard: &Shard, folder: &Path, records: &[Record]) -> Result<PathBuf, Error> {
        let path = folder.join(&shard.name);
        let experiments = experiments(shard);
        let notes = [
            (CAMPAIGN, self.description.campaign.as_str()),
            (VERSION, RELEASE),
            (EXPERIMENTS, experiments.as_str()),
        ];
        let written = (|| -> Result<(), Box<dyn std::error::Error>> {
            let bytes = table::file(records, &notes)?;
            std::fs::create_dir_all(folder)?;
            let mut file = Whole::replace(&path)?;
            file.write_all(&bytes)?;
            Ok(file.finish_on_disk()?)
        })();
        match written {
            // Another process may have written the file that this process could not write.
            Err(error) if self.checked(shard, folder).is_err() => Err(unwritten(&path, &*error)),
            _ => Ok(path),
        }
    }
}

/// Returns an error about a file. If the message starts with a line number, the function moves this number from the
/// message to the end of the file name.
fn placed(file: &str, message: String) -> Error {
    match line_of(&message) {
        Some((line, rest)) => Error::Campaign { file: format!("{file}:{line}"), message: rest.to_owned() },
        None => Error::Campaign { file: file.to_owned(), message },
    }
}

/// Returns the range of experiments of a shard as text. The text is metadata in the file of the shard.
fn experiments(shard: &Shard) -> String {
    format!("{}..{}", shard.range.start, shard.range.end)
}

fn unwritten(path: &Path, error: &(dyn std::error::Error + 'static)) -> Error {
    let full =
        error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::StorageFull);
    let why = if full { "the disk is full".to_owned() } else { error.to_string() };
    let remedy =
        "finished shards are kept; free disk space or choose another folder, and run the campaign again";
    Error::file(path, format!("{why}: {remedy}"))
}

/// Returns a message that explains why a site is not available.
fn no_site(site: Site, point: &Point, has: &[Site]) -> String {
    let names: Vec<&str> = has.iter().map(|site| site.name()).collect();
    let fits = names.join(", ");
    if !site.machines().contains(&point.isa) {
        let machines: Vec<&str> = site.machines().iter().map(|isa| Isa::name(*isa)).collect();
        return format!(
            "sites: {} does not have a {site}, which {} has; expected {fits}",
            point.isa,
            machines.join(" and ")
        );
    }
    let fits = if has.is_empty() { "no site exists".to_owned() } else { format!("expected {fits}") };
    format!(
        "sites: the run without a fault does not have a {site} that can be changed and that the filter allows; {fits}"
    )
}

fn described(point: &Point) -> PointDescription {
    let outputs = point.golden.iter().flat_map(|(name, array)| [name.as_bytes(), &array.bytes]);
    PointDescription {
        parameters: point.parameters.iter().cloned().collect(),
        isa: point.isa.name().to_owned(),
        chip: point.chip.clone(),
        mode: point.mode.to_owned(),
        groups: point.groups,
        instructions: point.statistics.instructions,
        lane_instructions: point.statistics.lane_instructions,
        divergent_branches: point.statistics.divergent_branches,
        fuel: point.fuel,
        outputs: format!("{:032x}", hash(outputs)),
        sites: point
            .instants
            .iter()
            .map(|(site, instants)| SiteProfile { site: *site, instants: instants.count() })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_called_that() {
        let full = std::io::Error::from(ErrorKind::StorageFull);
        let message = unwritten(Path::new("r/a.parquet"), &full).to_string();
        assert!(
            message.starts_with("r/a.parquet: the disk is full: finished shards are kept; free disk space"),
            "{message}"
        );
    }

    #[test]
    fn threads_may_share_a_campaign() {
        fn shared<T: Send + Sync>() {}
        shared::<Campaign>();
    }
}
