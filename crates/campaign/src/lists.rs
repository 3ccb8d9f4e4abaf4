//! Files with lists of faults: CSV, and Parquet files of results.

use std::path::Path;

use bytes::Bytes;
use reconverge_isa::source::{parse_number, suggest};
use reconverge_workbench::values::Files;

use crate::experiment::Record;
use crate::file::CampaignFile;
use crate::listed::ListedFault;
use crate::site::{Model, Site};
use crate::source::Beside;
use crate::table;

/// Reads the faults that a campaign file states one by one: its own, then those of its list.
///
/// # Errors
/// The file, and the problem with it.
pub(crate) fn faults_of(path: &Path, file: &CampaignFile) -> Result<Vec<ListedFault>, (String, String)> {
    let own = path.display().to_string();
    let mut faults = file.fault.clone();
    let check = |faults: &[ListedFault], what: &str| {
        faults.iter().enumerate().try_for_each(|(number, fault)| {
            fault.check().map_err(|why| format!("{what} {}: {why}", number + 1))
        })
    };
    check(&faults, "[[fault]]").map_err(|why| (own, why))?;
    if let Some(name) = &file.faults {
        let beside = Beside::of(path);
        let listed = beside.read(name).and_then(|bytes| {
            let listed = read(name, bytes)?;
            check(&listed, "fault")?;
            Ok(listed)
        });
        faults.extend(listed.map_err(|why| (beside.path(name).display().to_string(), why))?);
    }
    Ok(faults)
}

/// The columns of a list that decide, and those of results that decide nothing.
const COLUMNS: [&str; 10] =
    ["site", "model", "step", "place", "lane", "bit", "xor", "value", "before", "after"];
const OTHERS: [&str; 9] = ["index", "point", "group", "pc", "outcome", "trap", "flow_step", "error", "hits"];

/// Reads a list: Parquet if the name ends in `.parquet`, otherwise CSV whose first line names the columns.
///
/// # Errors
/// The line, the column, and what would fit.
fn read(name: &str, bytes: Vec<u8>) -> Result<Vec<ListedFault>, String> {
    if name.ends_with(".parquet") {
        let bytes = Bytes::from(bytes);
        table::verify(&bytes).map_err(|damage| damage.to_string())?;
        let records = table::records(bytes).map_err(|damage| damage.to_string())?;
        let fault = |record: Record| ListedFault {
            site: Some(record.site),
            model: Some(record.model),
            step: Some(record.step),
            place: Some(record.place),
            lane: record.lane,
            xor: Some(record.before ^ record.after),
            ..ListedFault::default()
        };
        return Ok(records.into_iter().map(fault).collect());
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let mut lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let (_, head) = lines.next().ok_or("it has no line that names its columns")?;
    let columns: Vec<&str> = head.split(',').map(str::trim).collect();
    for column in &columns {
        if !COLUMNS.contains(column) && !OTHERS.contains(column) && *column != "class" {
            return Err(format!("line 1: unknown column `{column}`: {}", suggest(column, COLUMNS)));
        }
    }
    let mut faults = Vec::new();
    for (number, line) in lines {
        let wrong = |why: String| format!("line {}: {why}", number + 1);
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != columns.len() {
            return Err(wrong(format!("{} columns were named, {} are here", columns.len(), cells.len())));
        }
        faults.push(row(&columns, &cells).map_err(wrong)?);
    }
    Ok(faults)
}

/// One line of a CSV list.
fn row(columns: &[&str], cells: &[&str]) -> Result<ListedFault, String> {
    let cell = |name: &str| {
        let at = columns.iter().position(|column| *column == name)?;
        Some(cells[at]).filter(|cell| !cell.is_empty())
    };
    let number = |name: &str| -> Result<Option<u64>, String> {
        let Some(text) = cell(name) else { return Ok(None) };
        let unsigned = text.parse::<u64>().ok();
        let number = unsigned.or_else(|| parse_number(text));
        number.map(Some).ok_or_else(|| format!("{name}: `{text}` is not a number"))
    };
    let small = |name: &str| -> Result<Option<u32>, String> {
        let narrow =
            |number: u64| u32::try_from(number).map_err(|_| format!("{name}: {number} is too large"));
        number(name)?.map(narrow).transpose()
    };
    let site = cell("site").map(|text| {
        Site::all()
            .find(|site| site.name() == text)
            .ok_or_else(|| format!("unknown site `{text}`: {}", suggest(text, Site::all().map(Site::name))))
    });
    let model = cell("model").map(|text| {
        let names = Model::ALL.map(Model::name);
        let found = Model::ALL.into_iter().find(|model| model.name() == text);
        found.ok_or_else(|| format!("unknown fault model `{text}`: {}", suggest(text, names)))
    });
    let changed = number("before")?.zip(number("after")?).map(|(before, after)| before ^ after);
    Ok(ListedFault {
        site: site.transpose()?,
        model: model.transpose()?,
        step: number("step")?,
        place: cell("place").map(str::to_owned),
        lane: small("lane")?,
        bit: small("bit")?,
        xor: number("xor")?.or(changed),
        value: number("value")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_csv_states_faults_by_its_columns() {
        let text = "site,step,place,lane,bit\nregister,3,$r1,5,31\nactive-mask,0x10,,,\n";
        let faults = read("list.csv", text.into()).unwrap();
        assert_eq!(faults.len(), 2);
        let ListedFault { site, step, place, lane, bit, .. } = &faults[0];
        assert_eq!((*site, *step, place.as_deref()), (Some(Site::Register), Some(3), Some("$r1")));
        assert_eq!((*lane, *bit), (Some(5), Some(31)));
        assert_eq!((faults[1].step, &faults[1].place, faults[1].lane), (Some(16), &None, None));
        let results = read("r.csv", "index,site,before,after\n7,memory,1,3\n".into()).unwrap();
        assert_eq!((results[0].xor, results[0].site), (Some(2), Some(Site::Memory)));
    }

    #[test]
    fn a_wrong_list_is_refused_with_line_and_what_would_fit() {
        let wrong = |text: &str| read("list.csv", text.into()).unwrap_err();
        assert!(wrong("site,stop\n").starts_with("line 1: unknown column `stop`: did you mean `step`?"));
        assert!(
            wrong("site\nregster\n").starts_with("line 2: unknown site `regster`: did you mean `register`?")
        );
        assert_eq!(wrong("site,step\nregister\n"), "line 2: 2 columns were named, 1 are here");
        assert_eq!(wrong("site,step\nregister,x\n"), "line 2: step: `x` is not a number");
        assert_eq!(wrong(""), "it has no line that names its columns");
    }
}
