//! Files with lists of faults. A list is a CSV file, or a Parquet file of results.

use std::path::Path;

use bytes::Bytes;
use reconverge_isa::source::{parse_number, suggest};
use reconverge_workbench::keys::plain;
use reconverge_workbench::values::Files;

use crate::experiment::Record;
use crate::file::CampaignFile;
use crate::listed::{ListedFault, PlacedFault};
use crate::site::{Model, Site};
use crate::source::Beside;
use crate::table;

/// Reads the faults that a campaign states one by one. The faults in the campaign file come first. The faults in the
/// list that the campaign file names come after these faults.
///
/// # Errors
/// Returns the name of the file, and the problem with the file.
pub(crate) fn faults_of(path: &Path, file: &CampaignFile) -> Result<Vec<PlacedFault>, (String, String)> {
    let own = plain(path).display().to_string();
    let entry = |(number, fault): (usize, &ListedFault)| PlacedFault {
        fault: fault.clone(),
        file: own.clone(),
        place: format!("fault {}", number + 1),
    };
    let mut entries: Vec<PlacedFault> = file.fault.iter().enumerate().map(entry).collect();
    if let Some(name) = &file.faults {
        let beside = Beside::of(path);
        let list = plain(&beside.path(name)).display().to_string();
        let faults = beside.read(name).and_then(|bytes| read(name, bytes));
        let faults = faults.map_err(|why| (list.clone(), why))?;
        let entry = |(place, fault)| PlacedFault { fault, file: list.clone(), place };
        entries.extend(faults.into_iter().map(entry));
    }
    for entry in &entries {
        entry.fault.check(file.bits).map_err(|why| entry.wrong(&why))?;
    }
    Ok(entries)
}

/// The columns of a list that define a fault, and the columns that only results have. The reader ignores the columns
/// that only results have.
const COLUMNS: [&str; 10] =
    ["site", "model", "step", "place", "lane", "bit", "xor", "value", "before", "after"];
const OTHERS: [&str; 9] = ["index", "point", "group", "pc", "outcome", "trap", "flow_step", "error", "hits"];

/// Reads a list of faults. If the file name ends in `.parquet`, the file is Parquet. Otherwise, the file is CSV, and
/// its first line names the columns. Returns each fault and the position of the fault in the list.
///
/// # Errors
/// Returns the problem. The message states the line, the column, and the values that are allowed.
fn read(name: &str, bytes: Vec<u8>) -> Result<Vec<(String, ListedFault)>, String> {
    let faults = if name.ends_with(".parquet") { of_results(bytes.into()) } else { of_text(bytes) }?;
    if faults.is_empty() {
        return Err("the list has no faults".to_owned());
    }
    Ok(faults)
}

/// Returns the faults of a Parquet file of results.
fn of_results(bytes: Bytes) -> Result<Vec<(String, ListedFault)>, String> {
    table::verify(&bytes).map_err(|damage| damage.to_string())?;
    let records = table::records(bytes).map_err(|damage| damage.to_string())?;
    let fault = |(number, record): (usize, Record)| {
        let place = format!("fault {}", number + 1);
        let xor = changed(Some(record.model), record.before, record.after);
        let fault = ListedFault {
            site: Some(record.site),
            model: Some(record.model),
            step: Some(record.step),
            place: Some(record.place),
            lane: record.lane,
            xor: xor.map_err(|why| format!("{place}: {why}"))?,
            ..ListedFault::default()
        };
        Ok((place, fault))
    };
    records.into_iter().enumerate().map(fault).collect()
}

/// Returns the bits that differ between `before` and `after`. A row of a results file has these two values. Returns
/// `None` if the model alone determines the new word.
fn changed(model: Option<Model>, before: u64, after: u64) -> Result<Option<u64>, String> {
    let xor = before ^ after;
    match model {
        Some(Model::Zero) if after != 0 => {
            Err(format!("model `zero` sets the word to 0, which contradicts after = {after:#x}"))
        }
        Some(Model::Zero) => Ok(None),
        Some(model) if model.stuck().is_some() && xor == 0 => Err(format!(
            "before and after are equal, so the stuck bit of model `{}` is unknown; omit the row, or state the bit \
             in a list in CSV",
            model.name()
        )),
        Some(model)
            if model.stuck().is_some_and(|value| if value { before & xor } else { after & xor } != 0) =>
        {
            Err(format!("model `{}` contradicts before = {before:#x} and after = {after:#x}", model.name()))
        }
        _ => Ok(Some(xor)),
    }
}

/// Returns the faults of a CSV list.
fn of_text(bytes: Vec<u8>) -> Result<Vec<(String, ListedFault)>, String> {
    let text = String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())?;
    // Spreadsheet programs write a byte order mark at the start of a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let (first, head) = lines.next().ok_or("missing header line with the names of the columns")?;
    let wrong = |why: String| format!("line {}: {why}", first + 1);
    let columns = cells(head).map_err(wrong)?;
    for (place, column) in columns.iter().enumerate() {
        let name = column.as_str();
        if !COLUMNS.contains(&name) && !OTHERS.contains(&name) && name != "class" {
            return Err(wrong(format!("unknown column `{column}`: {}", suggest(column, COLUMNS))));
        }
        if columns[..place].contains(column) {
            return Err(wrong(format!("duplicate column `{column}`")));
        }
    }
    let mut faults = Vec::new();
    for (number, line) in lines {
        let place = format!("line {}", number + 1);
        let wrong = |why: String| format!("{place}: {why}");
        let cells = cells(line).map_err(wrong)?;
        if cells.len() != columns.len() {
            return Err(wrong(format!("expected {} columns, found {}", columns.len(), cells.len())));
        }
        let fault = row(&columns, &cells).map_err(wrong)?;
        faults.push((place, fault));
    }
    Ok(faults)
}

/// Returns the cells of a line. A cell in double quotes may contain commas. In a quoted cell, two double quotes stand for
/// one double quote.
fn cells(line: &str) -> Result<Vec<String>, String> {
    let (mut cells, mut rest) = (Vec::new(), line);
    loop {
        rest = rest.trim_start();
        let Some(mut quoted) = rest.strip_prefix('"') else {
            let (cell, after) =
                rest.split_once(',').map_or((rest, None), |(cell, after)| (cell, Some(after)));
            cells.push(cell.trim().to_owned());
            match after {
                Some(after) => rest = after,
                None => return Ok(cells),
            }
            continue;
        };
        let mut cell = String::new();
        loop {
            let (part, after) = quoted.split_once('"').ok_or("missing closing quote")?;
            cell.push_str(part);
            quoted = after;
            match quoted.strip_prefix('"') {
                Some(after) => quoted = after,
                None => break,
            }
            cell.push('"');
        }
        cells.push(cell.trim().to_owned());
        rest = quoted.trim_start();
        if rest.is_empty() {
            return Ok(cells);
        }
        rest = rest
            .strip_prefix(',')
            .ok_or_else(|| format!("expected a comma after a quote, found `{rest}`"))?;
    }
}

/// Reads one line of a CSV list.
fn row(columns: &[String], cells: &[String]) -> Result<ListedFault, String> {
    let cell = |name: &str| {
        let at = columns.iter().position(|column| column == name)?;
        Some(cells[at].as_str()).filter(|cell| !cell.is_empty())
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
    let model = model.transpose()?;
    let (bit, xor, value) = (small("bit")?, number("xor")?, number("value")?);
    let (before, after) = (number("before")?, number("after")?);
    let is_stated = bit.is_some() || xor.is_some() || value.is_some();
    let (xor, value) = match (before, after) {
        (None, None) => (xor, value),
        _ if is_stated => return Err("expected before and after, or one of bit, xor and value".to_owned()),
        (Some(before), Some(after)) => (changed(model, before, after)?, None),
        (None, after) => (None, after),
        (Some(_), None) => return Err("before needs after".to_owned()),
    };
    Ok(ListedFault {
        site: site.transpose()?,
        model,
        step: number("step")?,
        place: cell("place").map(str::to_owned),
        lane: small("lane")?,
        bit,
        xor,
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_csv_states_faults_by_its_columns() {
        let text = "site,step,place,lane,bit\nregister,3,$r1,5,31\nactive-mask,0x10,,,\n";
        let faults = |text: &str| -> Vec<ListedFault> {
            read("list.csv", text.into()).unwrap().into_iter().map(|(_, fault)| fault).collect()
        };
        let results = faults("index,site,before,after\n7,memory,1,3\n");
        let faults = faults(text);
        assert_eq!(faults.len(), 2);
        let ListedFault { site, step, place, lane, bit, .. } = &faults[0];
        assert_eq!((*site, *step, place.as_deref()), (Some(Site::Register), Some(3), Some("$r1")));
        assert_eq!((*lane, *bit), (Some(5), Some(31)));
        assert_eq!((faults[1].step, &faults[1].place, faults[1].lane), (Some(16), &None, None));
        assert_eq!((results[0].xor, results[0].site), (Some(2), Some(Site::Memory)));
    }

    #[test]
    fn a_wrong_list_is_refused_with_line_and_what_would_fit() {
        let wrong = |text: &str| read("list.csv", text.into()).unwrap_err();
        assert!(wrong("site,stop\n").starts_with("line 1: unknown column `stop`: did you mean `step`?"));
        assert!(
            wrong("site\nregster\n").starts_with("line 2: unknown site `regster`: did you mean `register`?")
        );
        assert_eq!(wrong("site,step\nregister\n"), "line 2: expected 2 columns, found 1");
        assert_eq!(wrong("site,step\nregister,x\n"), "line 2: step: `x` is not a number");
        assert_eq!(wrong(""), "missing header line with the names of the columns");
    }

    #[test]
    fn a_list_as_spreadsheets_write_it_is_read() {
        let read = |text: &str| read("list.csv", text.into());
        let found =
            read("\u{feff}\"site\",\"place\",bit\n\"register\",\"$\"\"r1, x\" ,3\n\n# no\nmemory,,\n")
                .unwrap();
        let (place, ListedFault { place: name, bit, .. }) = &found[0];
        assert_eq!((&**place, name.as_deref(), *bit), ("line 2", Some("$\"r1, x"), Some(3)));
        assert_eq!((&*found[1].0, found[1].1.site), ("line 5", Some(Site::Memory)));
        let wrong = |text: &str| read(text).unwrap_err();
        assert_eq!(wrong("site,bit,site\nregister,1,memory\n"), "line 1: duplicate column `site`");
        assert_eq!(wrong("site,bit\n"), "the list has no faults");
        assert_eq!(wrong("site\n\"register\n"), "line 2: missing closing quote");
        assert_eq!(wrong("site\n\"register\"x\n"), "line 2: expected a comma after a quote, found `x`");
    }

    #[test]
    fn after_alone_is_the_word_and_models_of_results_fit_before_and_after() {
        let one = |text: &str| read("list.csv", format!("site,model,before,after\nregister,{text}\n").into());
        assert_eq!(one(",,7").unwrap()[0].1.value, Some(7));
        assert_eq!(one("zero,7,0").unwrap()[0].1.xor, None);
        assert_eq!(one("stuck-at-1,1,3").unwrap()[0].1.xor, Some(2));
        for wrong in [",7,", "zero,7,1", "stuck-at-1,3,1", "stuck-at-0,1,1"] {
            assert!(one(wrong).unwrap_err().starts_with("line 2: "), "{wrong}");
        }
    }
}
