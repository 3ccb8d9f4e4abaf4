//! Claims divide the shards of a folder among processes. The processes may be on one host or on several hosts.
//!
//! A claim is a file with the name `.NAME.claim` next to the shard. The process that runs the shard creates the claim
//! exclusively, and deletes the claim when the shard is finished. The claim states the process that created the claim.
//! This process rewrites the claim every [`BEAT`]. A claim is stale in two cases: its process has verifiably ended, or
//! no process has rewritten the claim for [`STALE`]. A process can verify the end of another process only if both
//! processes are on the same host and in the same process namespace. If a claim is stale, another process takes over
//! the claim.
//!
//! Claims only avoid duplicate work. Results are correct even if claims fail. For example, two processes may both take
//! over a stale claim and run the same shard. Both processes then write the same bytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use reconverge_output::{Whole, random_name};
use serde::{Deserialize, Serialize};

/// Time between two writes of a claim.
const BEAT: Duration = Duration::from_secs(10);

/// Time after which a claim is stale if no process rewrites the claim.
const STALE: Duration = Duration::from_secs(120);

/// Maximum number of bytes that are read from a claim.
const MOST: u64 = 4096;

/// The process that a claim states.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    host: String,
    process: u32,
    /// Identifies the boot of the host and the process namespace. The number of a process is unique only within one
    /// process namespace and one boot of the host. Containers on the same host have different namespaces. `None` if the
    /// system does not provide this information.
    space: Option<String>,
    /// Start time of the process. A later process with the same number has a different start time.
    started: Option<String>,
    /// Text that differs between all claims of the process.
    token: String,
}

impl Owner {
    fn this() -> io::Result<Owner> {
        let process = std::process::id();
        let (space, started) = (space(), started(process));
        Ok(Owner { host: host(), process, space, started, token: random_name()? })
    }

    /// Returns whether the process is known to have ended.
    fn has_ended(&self) -> bool {
        self.space.is_some() && self.space == space() && started(self.process) != self.started
    }
}

/// The result of claiming a shard.
pub(crate) enum Attempt {
    /// The shard belongs to the caller until the claim is dropped.
    Mine(Claim),
    /// Another process has claimed the shard. The field is a text that names this process for the user.
    Taken(String),
}

/// A claim of this process. When the claim is dropped, its file is deleted.
pub(crate) struct Claim {
    path: PathBuf,
    text: String,
    /// Sender that keeps the thread running. `drop` first drops this sender, which ends the thread.
    end: Option<Sender<()>>,
    beats: Option<JoinHandle<()>>,
}

/// Claims the shard with this name in a folder.
///
/// # Errors
/// Fails if the folder is not writable.
pub(crate) fn claim(folder: &Path, name: &str) -> io::Result<Attempt> {
    let path = folder.join(format!(".{name}.claim"));
    // The loop removes a stale claim and then tries again to create a claim. Between the removal and the second
    // attempt, another process may create a claim. In this case, the shard belongs to that process.
    for _ in 0..2 {
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Claim::begin(path, file).map(Attempt::Mine),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let owner = owner(&path);
        match owner {
            Some(owner) if !owner.has_ended() && !is_old(&path)? => {
                return Ok(Attempt::Taken(format!("process {} on {}", owner.process, owner.host)));
            }
            // A process is writing the claim at this moment, or the file is not a claim.
            None if !is_old(&path)? => return Ok(Attempt::Taken("another process".to_owned())),
            _ => match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
    }
    Ok(Attempt::Taken("another process".to_owned()))
}

impl Claim {
    fn begin(path: PathBuf, mut file: File) -> io::Result<Claim> {
        let written = Owner::this().and_then(|owner| {
            let text = serde_json::to_string(&owner)?;
            file.write_all(text.as_bytes())?;
            Ok(text)
        });
        let text = written.inspect_err(|_| drop(fs::remove_file(&path)))?;
        let (end, ended) = channel();
        let again = text.clone();
        let beats = std::thread::spawn(move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                // The thread writes to the open file instead of the path. If another process has created a claim at
                // this path, that claim stays unchanged. If a write fails, the claim becomes stale, and another process
                // may run the same shard. Both processes write the same results. So the thread ignores the error.
                let _ = file.rewind().and_then(|()| file.write_all(again.as_bytes()));
            }
        });
        Ok(Claim { path, text, end: Some(end), beats: Some(beats) })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.end = None;
        if let Some(beats) = self.beats.take() {
            let _ = beats.join();
        }
        // While this process was suspended, another process may have taken over the claim. So this function deletes the
        // file only if the file still has the text of this claim.
        if read(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // The path may be a pipe, and reading a pipe may block forever.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    File::open(path)?.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}

fn owner(path: &Path) -> Option<Owner> {
    serde_json::from_str(&read(path).ok()?).ok()
}

/// Returns whether no process has written the claim for [`STALE`]. The function measures the age of the claim with the
/// clock of the file system, because the clocks of hosts may differ.
fn is_old(path: &Path) -> io::Result<bool> {
    let written = match fs::symlink_metadata(path) {
        Ok(claim) => claim.modified()?,
        // The file does not exist, because another process has just deleted the claim.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let mut probe = Whole::replace(path)?;
    probe.write_all(b"now")?;
    Ok(probe.modified()?.duration_since(written).is_ok_and(|age| age > STALE))
}

// ---- Processes, read from Linux's `/proc`. On systems other than Linux, only the age of a claim decides whether the
// claim is stale.

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = Some(name.trim()).filter(|name| !name.is_empty()).map(str::to_owned);
    name.or_else(|| std::env::var("COMPUTERNAME").ok()).unwrap_or_else(|| "an unnamed host".to_owned())
}

fn space() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// Returns the start time of a process, as the number of ticks since the boot. Returns `None` if the process has ended.
/// A zombie process is treated as ended.
fn started(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the process is in brackets before the fields, and may contain any characters.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    // The start time is field 22 of the file. The code has already read field 3, which is the state.
    fields.nth(18).filter(|_| !matches!(state, "Z" | "X")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("reconverge-claim-{name}-{}", random_name().unwrap()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn is_mine(folder: &Path) -> bool {
        matches!(claim(folder, "s").unwrap(), Attempt::Mine(_))
    }

    #[test]
    fn a_claim_holds_until_it_is_dropped_and_leaves_nothing() {
        let folder = folder("holds");
        let Attempt::Mine(mine) = claim(&folder, "s").unwrap() else { panic!("it is taken") };
        let Attempt::Taken(by) = claim(&folder, "s").unwrap() else { panic!("it is claimed twice") };
        assert_eq!(by, format!("process {} on {}", std::process::id(), host()));
        drop(mine);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        assert!(is_mine(&folder));
        fs::remove_dir_all(folder).unwrap();
    }

    /// A process in another container may have the number of a process that has ended in this container. So this number
    /// does not show whether the process in the other container has ended. Only the age of that claim decides whether
    /// the claim is stale.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_claim_of_an_ended_process_is_stale_and_that_of_another_container_is_not() {
        let folder = folder("ended");
        let path = folder.join(".s.claim");
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let mut owner = Owner::this().unwrap();
        owner.process = ended.id();
        ended.wait().unwrap();
        let plant = |owner: &Owner| fs::write(&path, serde_json::to_string(owner).unwrap()).unwrap();
        plant(&owner);
        assert!(is_mine(&folder));
        // The process with this number runs, but has another start time than the claim states. So the process of the
        // claim has ended, and a later process has reused the number.
        plant(&Owner {
            process: std::process::id(),
            started: Some("1".to_owned()),
            ..Owner::this().unwrap()
        });
        assert!(is_mine(&folder));
        owner.space = Some("another boot, or another namespace".to_owned());
        plant(&owner);
        assert!(!is_mine(&folder));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_claim_that_is_not_rewritten_for_two_minutes_is_stale() {
        let folder = folder("old");
        let path = folder.join(".s.claim");
        let owner = Owner { space: Some("another".to_owned()), ..Owner::this().unwrap() };
        for text in [serde_json::to_string(&owner).unwrap(), "half a cla".to_owned()] {
            fs::write(&path, text).unwrap();
            assert!(!is_mine(&folder));
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_modified(std::time::SystemTime::now() - STALE - BEAT).unwrap();
            assert!(is_mine(&folder));
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
