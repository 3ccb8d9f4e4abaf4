//! Positions in a text as in editors: a line, and a column in the editor's unit.

/// Unit in which columns are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnUnit {
    /// Bytes of UTF-8.
    #[default]
    Utf8,
    /// 16-bit units of UTF-16.
    Utf16,
}

impl ColumnUnit {
    /// Returns the number of columns that a text occupies.
    pub fn width(self, text: &str) -> usize {
        match self {
            ColumnUnit::Utf8 => text.len(),
            ColumnUnit::Utf16 => text.encode_utf16().count(),
        }
    }

    fn len(self, character: char) -> usize {
        match self {
            ColumnUnit::Utf8 => character.len_utf8(),
            ColumnUnit::Utf16 => character.len_utf16(),
        }
    }
}

/// The offset in bytes of the start of each line of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineStarts(Vec<usize>);

impl LineStarts {
    /// Finds the lines of a text. A text has at least one line, which may be empty.
    pub fn new(text: &str) -> LineStarts {
        let behind = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        LineStarts([0].into_iter().chain(behind).collect())
    }

    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of the line that contains the byte at an offset. Line numbers begin at 0.
    pub fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) - 1
    }

    /// Returns the offset of the start of line `line`. Line numbers begin at 0. For lines after the last line, returns
    /// the length of `text`.
    pub fn start(&self, text: &str, line: usize) -> usize {
        self.0.get(line).copied().unwrap_or(text.len())
    }

    /// Returns the offset of the end of a line. The line ending follows this offset.
    pub fn end(&self, text: &str, line: usize) -> usize {
        let end = self.0.get(line + 1).map_or(text.len(), |next| next - 1);
        let start = self.start(text, line);
        start + text[start..end].strip_suffix('\r').unwrap_or(&text[start..end]).len()
    }

    /// Returns the line and the column of the byte at an offset. The numbers of lines and columns begin at 0. A byte
    /// inside a character has the column of the character.
    pub fn position(&self, text: &str, offset: usize, unit: ColumnUnit) -> (usize, usize) {
        let offset = offset.min(text.len());
        let line = self.line(offset);
        let mut end = offset;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        (line, unit.width(&text[self.0[line]..end]))
    }

    /// Returns the offset in bytes of a line and column. The numbers of lines and columns begin at 0. A column after
    /// the end of its line means the end of the line. A line after the last line means the end of the text.
    pub fn offset(&self, text: &str, line: usize, column: usize, unit: ColumnUnit) -> usize {
        if line >= self.count() {
            return text.len();
        }
        let (start, end) = (self.start(text, line), self.end(text, line));
        let mut left = column;
        for (at, character) in text[start..end].char_indices() {
            if left < unit.len(character) {
                return start + at;
            }
            left -= unit.len(character);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_in_the_units_of_the_editor() {
        let text = "a\u{1f600}b\r\n\u{e9}x";
        let lines = LineStarts::new(text);
        assert_eq!(lines.count(), 2);
        let at = text.find('b').unwrap();
        assert_eq!(lines.position(text, at, ColumnUnit::Utf8), (0, 5));
        assert_eq!(lines.position(text, at, ColumnUnit::Utf16), (0, 3));
        assert_eq!(lines.offset(text, 0, 3, ColumnUnit::Utf16), at);
        // If a column is between the two UTF-16 units of a character, the column means the start of the character.
        assert_eq!(lines.offset(text, 0, 2, ColumnUnit::Utf16), 1);
        assert_eq!(lines.offset(text, 0, 99, ColumnUnit::Utf16), at + 1);
        assert_eq!(lines.offset(text, 1, 1, ColumnUnit::Utf16), text.len() - 1);
        assert_eq!(lines.offset(text, 7, 0, ColumnUnit::Utf8), text.len());
        assert_eq!(lines.position(text, 999, ColumnUnit::Utf16), (1, 2));
    }
}
