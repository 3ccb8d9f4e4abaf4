//! Builds files of every container format. An ELF file is built field by field, so that a test can set any field to a
//! wrong value.

/// A section of an ELF file to build.
#[derive(Clone)]
pub struct Sec {
    /// Name of the section.
    pub name: &'static str,
    /// sh_type.
    pub kind: u32,
    /// sh_flags.
    pub flags: u64,
    /// sh_link.
    pub link: u32,
    /// sh_info.
    pub info: u32,
    /// Contents of the section.
    pub data: Vec<u8>,
    /// Size that the header states, if this size differs from the size of the data.
    pub size: Option<u64>,
}

/// Returns a PROGBITS section.
pub fn sec(name: &'static str, data: &[u8]) -> Sec {
    Sec { name, kind: 1, flags: 0, link: 0, info: 0, data: data.to_vec(), size: None }
}

/// An ELF file to build.
pub struct Elf {
    /// Whether the file is a 64-bit file.
    pub wide: bool,
    /// e_machine.
    pub machine: u16,
    /// e_flags.
    pub flags: u32,
    /// Sections of the file. The first section in this list has number 1.
    pub sections: Vec<Sec>,
}

impl Elf {
    /// Returns the bytes of the file: header, section contents (not aligned), `.shstrtab`, section headers.
    pub fn build(&self) -> Vec<u8> {
        let (header, entry) = if self.wide { (64, 64) } else { (52, 40) };
        let mut out = vec![0; header];
        let mut names = vec![0];
        let mut rows = vec![(0, sec("", &[]), 0)];
        rows[0].1.kind = 0;
        for section in &self.sections {
            let name = names.len() as u32;
            names.extend(section.name.bytes());
            names.push(0);
            rows.push((name, section.clone(), out.len() as u64));
            out.extend(&section.data);
        }
        let name = names.len() as u32;
        names.extend(b".shstrtab\0");
        let at = out.len() as u64;
        out.extend(&names);
        rows.push((name, Sec { kind: 3, ..sec(".shstrtab", &names) }, at));
        let table = out.len() as u64;
        for (name, section, offset) in &rows {
            let size = section.size.unwrap_or(section.data.len() as u64);
            out.extend(name.to_le_bytes());
            out.extend(section.kind.to_le_bytes());
            self.word(&mut out, section.flags);
            self.word(&mut out, 0);
            self.word(&mut out, *offset);
            self.word(&mut out, size);
            out.extend(section.link.to_le_bytes());
            out.extend(section.info.to_le_bytes());
            self.word(&mut out, 1);
            self.word(&mut out, 0);
        }
        let mut head = Vec::new();
        head.extend(b"\x7fELF");
        head.extend([if self.wide { 2 } else { 1 }, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        head.extend(2u16.to_le_bytes());
        head.extend(self.machine.to_le_bytes());
        head.extend(1u32.to_le_bytes());
        self.word(&mut head, 0);
        self.word(&mut head, 0);
        self.word(&mut head, table);
        head.extend(self.flags.to_le_bytes());
        for half in [header as u16, 0, 0, entry, rows.len() as u16, rows.len() as u16 - 1] {
            head.extend(half.to_le_bytes());
        }
        out[..header].copy_from_slice(&head);
        out
    }

    fn word(&self, out: &mut Vec<u8>, value: u64) {
        if self.wide { out.extend(value.to_le_bytes()) } else { out.extend((value as u32).to_le_bytes()) }
    }
}

/// A symbol to build: name, type, section, value, size.
pub type Sym = (&'static str, u8, u16, u64, u64);

/// Returns `.symtab` and `.strtab`. The strings of `.symtab` are in the section with index `strings`. Symbol 0 is
/// empty.
pub fn symbols(wide: bool, strings: u32, symbols: &[Sym]) -> [Sec; 2] {
    let mut names = vec![0];
    let mut table = vec![0; if wide { 24 } else { 16 }];
    for (name, kind, section, value, size) in symbols {
        let at = names.len() as u32;
        names.extend(name.bytes());
        names.push(0);
        table.extend(at.to_le_bytes());
        if wide {
            table.extend([1 << 4 | kind, 0]);
            table.extend(section.to_le_bytes());
            table.extend(value.to_le_bytes());
            table.extend(size.to_le_bytes());
        } else {
            table.extend((*value as u32).to_le_bytes());
            table.extend((*size as u32).to_le_bytes());
            table.extend([1 << 4 | kind, 0]);
            table.extend(section.to_le_bytes());
        }
    }
    [Sec { kind: 2, link: strings, ..sec(".symtab", &table) }, Sec { kind: 3, ..sec(".strtab", &names) }]
}

/// Returns words as little-endian bytes.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a cubin with all possible sections. The sections are 1 text, 2 c1, 3 info, 4 shared, 5 local, 6 c14, 7
/// relocations of c14, 8 global data, 9 c0, 10 symbols, 11 names of symbols.
pub fn cubin(wide: bool) -> Elf {
    let rel = if wide {
        [8u64.to_le_bytes(), (1u64 << 32 | 2).to_le_bytes()].concat()
    } else {
        words(&[8, 1 << 8 | 2])
    };
    let info = [
        words(&[0x0018_1803, 0x000c_1704, 0, 0x0008_0001, 4 << 18, 0x000c_1704, 0, 0, 8 << 18]),
        words(&[0x0004_1e04, 0x10, 0x0008_0204, 3, 5, 0x000c_0504, 64, 2, 1]),
    ]
    .concat();
    let [symtab, strtab] = symbols(
        wide,
        11,
        &[("counter", 1, 8, 4, 4), ("table", 1, 9, 0, 8), ("tex", 10, 0, 0, 0), ("k", 2, 1, 0, 8)],
    );
    let sections = vec![
        Sec { info: 7 << 24 | 4, flags: 2 << 20 | 6, ..sec(".text.k", &words(&[0x1000_0001, 0xf])) },
        Sec { info: 1, ..sec(".nv.constant1.k", &words(&[0x4048_f5c3])) },
        Sec { kind: 0x7000_0000, info: 1, ..sec(".nv.info.k", &info) },
        Sec { kind: 8, size: Some(0x28), ..sec(".nv.shared.k", &[]) },
        Sec { kind: 8, size: Some(16), ..sec(".nv.local.k", &[]) },
        sec(".nv.constant14", &words(&[0, 0, 0, 0])),
        Sec { kind: 9, link: 10, info: 6, ..sec(".rel.nv.constant14", &rel) },
        sec(".nv.global.init", &words(&[0, 99])),
        sec(".nv.constant0", &words(&[1, 2])),
        symtab,
        strtab,
    ];
    Elf { wide, machine: 190, flags: 0x000a_010d, sections }
}

/// Returns an object in the form of LLVM's R600 target, with two functions.
pub fn r600() -> Elf {
    let [symtab, strtab] = symbols(false, 4, &[("ps", 2, 1, 0, 8), ("vs", 2, 1, 8, 16)]);
    let config = words(&[0x28850, 0x0203, 0x2880c, 0x40, 0x28868, 0x0104, 0x2880c, 0]);
    let sections =
        vec![sec(".text", &words(&[1, 2, 3, 4, 5, 6])), sec(".AMDGPU.config", &config), symtab, strtab];
    Elf { wide: false, machine: 224, flags: 7, sections }
}

/// Returns a fat binary with the members `members`. A member has a kind, an sm number, flags and a payload.
pub fn fatbin(members: &[(u16, u32, u64, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, sm, flags, payload) in members {
        body.extend(kind.to_le_bytes());
        body.extend(0x101u16.to_le_bytes());
        body.extend(0x40u32.to_le_bytes());
        body.extend((payload.len() as u64).to_le_bytes());
        body.extend(words(&[0, 0, 0, *sm, 0, 0]));
        body.extend(flags.to_le_bytes());
        body.extend([0; 16]);
        body.extend(payload);
    }
    let mut out = words(&[0xba55_ed50, 0x0010_0001]);
    out.extend((body.len() as u64).to_le_bytes());
    out.extend(body);
    out
}

/// Returns a Wii U file with one pixel program.
pub fn gsh(program: &[u32]) -> Vec<u8> {
    let be = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let mut registers = vec![0; 58];
    registers[0] = 0x0203;
    registers[4] = 1;
    registers[5] = 0x100;
    registers[41] = 4 * program.len() as u32;
    let mut out = be(&[0x4766_7832, 32, 7, 1, 2, 0, 0, 0]);
    let block = |kind: u32, data: &[u8]| {
        let mut block = be(&[0x424c_4b7b, 32, 1, 0, kind, data.len() as u32, 0, 0]);
        block.extend(data);
        block
    };
    out.extend(block(6, &be(&registers)));
    out.extend(block(7, &words(program)));
    out.extend(block(1, &[]));
    out
}

/// An encoding to build: machine, type, words, registers.
pub type Encoding<'a> = (u32, u32, &'a [u32], &'a [(u32, u32)]);

/// Returns an AMD CAL image with the given encodings.
pub fn cal(encodings: &[Encoding<'_>]) -> Vec<u8> {
    let count = encodings.len();
    let segments = 1 + 2 * count;
    let sections = 2 + count;
    let dictionary = 52 + 32 * segments;
    let names = dictionary + 20 * count;
    let table = names + 17;
    let mut at = (table + 40 * sections) as u32;
    let mut heads = words(&[0x7000_0002, dictionary as u32, 0, 0, 20 * count as u32, 0, 0, 0]);
    let mut entries = Vec::new();
    let mut body = Vec::new();
    let mut rows = vec![0; 40];
    rows.extend(words(&[1, 3, 0, 0, names as u32, 17, 0, 0, 0, 0]));
    for (machine, kind, code, registers) in encodings {
        let mut note = words(&[8, 4, 8]);
        note.extend(b"ATI CAL\0\0\0\0\0");
        note.extend(words(&[8, 8 * registers.len() as u32, 1]));
        note.extend(b"ATI CAL\0");
        note.extend(registers.iter().flat_map(|(address, value)| words(&[*address, *value])));
        let (notes, load) = (note.len() as u32, 4 * code.len() as u32);
        entries.extend(words(&[*machine, *kind, at, notes + load, 0]));
        heads.extend(words(&[4, at, 0, 0, notes, 0, 0, 0]));
        heads.extend(words(&[1, at + notes, 0, 0, load, load, 0, 0]));
        rows.extend(words(&[11, 1, 0, 0, at + notes, load, 0, 0, 0, 0]));
        body.extend(note);
        body.extend(words(code));
        at += notes + load;
    }
    let mut out = b"\x7fELF\x01\x01\x01\x64\x01\0\0\0\0\0\0\0".to_vec();
    out.extend([2, 0, 125, 0]);
    out.extend(words(&[1, 0, 52, table as u32, 1]));
    for half in [52, 32, segments as u16, 40, sections as u16, 1] {
        out.extend(half.to_le_bytes());
    }
    out.extend(heads);
    out.extend(entries);
    out.extend(b"\0.shstrtab\0.text\0");
    out.extend(rows);
    out.extend(body);
    out
}

/// Returns a sample of each format that this module builds. Each sample comes with the name of its format. The only
/// format without a sample is `ctm-elf`.
///
/// # Panics
/// Does not panic, because the data to compress is in memory.
pub fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let text = "architecture {sm_13}\nmodname {m}\nsampler { name = t texunit = 1 }\n\
        consts { name = c segname = const segnum = 0 offset = 0 bytes = 8 mem { 0x1 0x2 } }\n\
        code { name = k reg = 2 smem = 16 bincode { 0x1000c805 0000000000 } const { segnum = 1 offset = 0 bytes = 4 mem { 0x5 } } }\n";
    let c: String = text.bytes().map(|byte| format!("{byte},")).collect();
    let host = Elf {
        wide: true,
        machine: 62,
        flags: 0,
        sections: vec![sec(".rodata", &[&cubin(false).build()[..], &gsh(&[1, 2])].concat())],
    };
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, text.as_bytes()).expect("memory takes it");
    vec![
        ("hex32", b"# words\n00000001 deadbeef\n".to_vec()),
        ("bin", words(&[1, 0x8000_0000])),
        ("cubin-text", text.as_bytes().to_vec()),
        ("cubin-elf32", cubin(false).build()),
        ("cubin-elf64", cubin(true).build()),
        ("fatbin", fatbin(&[(2, 13, 0, cubin(true).build()), (1, 10, 0, b"ptx".to_vec())])),
        (
            "c",
            format!(
                "#define W(x) (x)\n#if defined(W) && 1\nunsigned char a[] = {{ {c} }};\n#else\n0\n#endif\n\
                const char s[] = \"a\\x41\" R\"(b)\"; unsigned w[] = {{ W(1), htonl(2) }};\n"
            )
            .into_bytes(),
        ),
        ("r600-elf", r600().build()),
        ("gsh", gsh(&[1, 2, 3, 4])),
        ("cal-elf", cal(&[(4, 0, &[1, 2], &[(0x28850, 3)]), (9, 0, &[3], &[])])),
        ("embedded", host.build()),
        ("gzip", packed.finish().expect("memory takes it")),
        ("diff", b"--- a/a.h\n+++ b/a.h\n@@ -1,2 +1,2 @@\n-u32 a[] = {1,\n+u32 a[] = {3,\n 2};\n".to_vec()),
        (
            "log",
            b"FRAG\nbytecode 2 dw -- 1 gprs -- 0 nstack ----\nshader 0 -- 7\n0000 C0000000 94200688  EXPORT_DONE\n----------\n"
                .to_vec(),
        ),
        ("dump", b"00000000: 10004205 00000780 mov\n00000008: f0000001 exit\n".to_vec()),
    ]
}
