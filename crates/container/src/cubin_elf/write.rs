//! Writes ELF cubins that [`load`](super::load) reads back as the same image.

use std::collections::{BTreeMap, HashSet};

use object::Endianness;
use object::elf as raw;
use object::write::elf::{FileHeader, Rel, SectionHeader, Sym, Writer};
use reconverge_isa::program::{ConstantBlock, Module, Place, Slot, Stage};
use reconverge_isa::{Image, Isa, Program};

use super::{ABSOLUTE_32, NUMBERS, TRIPLES};
use crate::bytes::to_bytes;
use crate::error::quoted;
use crate::{Error, Format, Written, cubin_text, elf, limits};

/// The value ELFOSABI_CUDA, and the version that CUDA 3.1 and later versions write.
const OS_ABI: (u8, u8) = (0x33, 2);
const EXECUTABLE: u16 = 2;
/// The type of attribute sections.
const INFO: u32 = 0x7000_0000;
/// SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR.
const WRITE: u64 = 1;
const ALLOC: u64 = 2;
const EXECUTE: u64 = 4;
/// The symbol type of texture references.
const TEXTURE: u8 = 10;
/// Flag bits in the word that contains the size. Every record of KPARAM_INFO has these flag bits.
const PARAM_FLAGS: u32 = 0x3f000;

/// A section to be written.
#[derive(Default)]
struct Part {
    name: String,
    kind: u32,
    flags: u64,
    info: u32,
    /// Whether the section's link field refers to the symbol table.
    linked: bool,
    data: Vec<u8>,
    /// Size of the section in bytes, if this size differs from the size of the data.
    size: Option<u64>,
}

impl Part {
    /// Returns a section without contents. `info` is the number of the section to which the new section belongs. If the
    /// new section does not belong to a section, `info` is 0.
    fn new(name: String, kind: u32, flags: u64, info: u16) -> Part {
        Part { name, kind, flags, info: info.into(), ..Part::default() }
    }
}

/// A symbol to be written: name, type, section, value, size.
struct Symbol {
    name: String,
    kind: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// Writes an ELF cubin. The file is a 64-bit file if `wide` is set, and otherwise a 32-bit file.
///
/// The image must have one module. All blocks of a constant bank become one section. If `load` reads the written
/// file, the loaded image may differ from this image. The returned notes report the differences. Blocks are merged.
/// Data that does not affect results is omitted if the format cannot represent this data.
///
/// # Errors
/// Returns an error that names the first item that the format cannot represent.
pub fn write(image: &Image, wide: bool) -> Result<Written<Vec<u8>>, Error> {
    let format = if wide { Format::CubinElf64 } else { Format::CubinElf32 }.name();
    let mut file = File {
        format,
        wide,
        parts: Vec::new(),
        symbols: Vec::new(),
        relocations: Vec::new(),
        notes: Vec::new(),
    };
    let default = Module::default();
    let module = match &image.modules[..] {
        [] => &default,
        [one] => one,
        several => {
            let what = format!("an image of {} modules", several.len());
            return file.unwritable(what, "an ELF cubin holds one module; write each to a separate file");
        }
    };
    if let Some(isa @ (Isa::R500 | Isa::R700)) = image.isa {
        return file
            .unwritable(format!("code of {isa}"), "a cubin holds Tesla code; write hex or bin instead");
    }
    if image.programs.is_empty() {
        return file.unwritable("an image without programs", "a cubin holds at least one kernel");
    }
    let chip = module.chip.as_deref().or(image.chip.as_deref()).unwrap_or(cubin_text::CHIPS[0]);
    let Some(sm) = cubin_text::CHIPS.iter().position(|known| *known == chip) else {
        return file
            .unwritable(format!("code for {}", quoted(chip)), "one of sm_10, sm_11, sm_12, sm_13 fits");
    };
    let bytes = if wide { 8 } else { 4 };
    if let Some(other) = module.pointer_bytes.filter(|other| *other != bytes) {
        let remedy = if wide { "write cubin-elf32" } else { "write cubin-elf64" };
        return file.unwritable(format!("a module with pointers of {other} bytes"), remedy);
    }
    for (what, is) in
        [("the module's name", module.name.is_some()), ("the ABI version", module.abi_version.is_some())]
    {
        if is {
            file.notes.push(format!("an ELF cubin cannot represent {what}, so the writer omits it"));
        }
    }
    let mut names = HashSet::new();
    // Each kernel gets the textures of the module. Textures with the same name share a symbol.
    let mut textures: BTreeMap<String, u32> = BTreeMap::new();
    for program in &image.programs {
        let name = file.kernel_name(program)?;
        if !names.insert(name.clone()) {
            return Err(Error::Duplicate { what: "kernel", name });
        }
        file.kernel(&name, program, module, &mut textures)?;
    }
    file.module(module)?;
    let flags = 10 + sm as u32;
    let flags = flags | flags << 16 | 0x100;
    match file.bytes(flags) {
        Ok(content) => Ok(Written { content, notes: file.notes }),
        Err(_) => file.unwritable("an image of this size", "a file below 4 GiB fits"),
    }
}

struct File {
    format: &'static str,
    wide: bool,
    parts: Vec<Part>,
    symbols: Vec<Symbol>,
    /// Relocations, grouped by the constant section that the relocations change.
    relocations: Vec<(usize, Vec<Rel>, bool)>,
    notes: Vec<String>,
}

/// The contents of a constant bank as one section.
struct Bank {
    bytes: Vec<u8>,
    /// Number of bytes up to the end of the last variable or slot. This variable or slot need not have contents.
    size: u64,
}

impl File {
    fn unwritable<T>(&self, what: impl Into<String>, remedy: &'static str) -> Result<T, Error> {
        Err(Error::Unwritable { format: self.format, what: what.into(), remedy })
    }

    fn checked_name(&self, what: &str, name: &str) -> Result<String, Error> {
        if name.contains('\0') || name.len() > 4000 {
            return self.unwritable(
                format!("the {what} {}", quoted(name)),
                "up to 4000 bytes without a zero byte fit",
            );
        }
        Ok(name.to_owned())
    }

    fn kernel_name(&self, program: &Program) -> Result<String, Error> {
        let Some(name) = &program.name else {
            return self.unwritable("a kernel without a name", "give it a name (.kernel NAME in the text)");
        };
        self.checked_name("kernel name", name)
    }

    /// Returns the section number of the part that is added next.
    fn next(&self) -> u16 {
        self.parts.len() as u16 + 1
    }

    fn push(&mut self, part: Part) -> u16 {
        let index = self.next();
        self.parts.push(part);
        index
    }

    fn kernel(
        &mut self,
        name: &str,
        program: &Program,
        module: &Module,
        textures: &mut BTreeMap<String, u32>,
    ) -> Result<(), Error> {
        let resources = &program.resources;
        let named = quoted(name);
        if let Some(stage) = program.stage.filter(|stage| *stage != Stage::Compute) {
            return self.unwritable(
                format!("{named}, a {stage} program"),
                "a cubin holds kernels; write hex or bin",
            );
        }
        if program.base != 0 {
            let what = format!("{named} at address {:#x}", program.base);
            return self.unwritable(what, "code of a cubin starts at 0; leave .base out");
        }
        if resources.stack.is_some() || program.usage != Default::default() {
            return self.unwritable(format!("the stack size or usage lists of {named}"), "leave .stack out");
        }
        let Some(registers) = resources.registers else {
            return self.unwritable(format!("{named} without a register count"), "say .reg N in the text");
        };
        let barriers = resources.barriers.unwrap_or(0);
        for (what, value, limit) in [
            ("registers", registers, limits::REGISTERS),
            ("barriers", barriers, limits::BARRIERS),
            ("bytes of shared memory", resources.shared_bytes.unwrap_or(0), limits::SHARED_BYTES),
            ("bytes of local memory", resources.local_bytes.unwrap_or(0), limits::LOCAL_BYTES),
        ] {
            if value > limit {
                return self.unwritable(format!("{named} with {value} {what}"), "the hardware has fewer");
            }
        }
        let symbol = self.symbols.len() as u32 + 1;
        let flags = ALLOC | EXECUTE | u64::from(barriers) << 20;
        let text = self.push(Part {
            info: registers << 24 | symbol,
            linked: true,
            data: to_bytes(&program.words),
            ..Part::new(format!(".text.{name}"), elf::PROGBITS, flags, 0)
        });
        let size = 4 * program.words.len() as u64;
        self.symbols.push(Symbol { name: name.to_owned(), kind: elf::FUNC, section: text, value: 0, size });
        for (bank, contents) in self.banks(&format!("kernel {named}"), &program.constants)? {
            let name = format!(".nv.constant{bank}.{name}");
            self.push(Part { data: contents.bytes, ..Part::new(name, elf::PROGBITS, ALLOC, text) });
        }
        for (area, bytes) in [("shared", resources.shared_bytes), ("local", resources.local_bytes)] {
            if let Some(bytes) = bytes {
                let part = Part::new(format!(".nv.{area}.{name}"), elf::NOBITS, ALLOC | WRITE, text);
                self.push(Part { size: Some(bytes.into()), ..part });
            }
        }
        let attributes = self.attributes(name, program, module, textures)?;
        if !attributes.is_empty() {
            let part = Part::new(format!(".nv.info.{name}"), INFO, 0, text);
            self.push(Part { linked: true, data: attributes, ..part });
        }
        Ok(())
    }

    fn attributes(
        &mut self,
        name: &str,
        program: &Program,
        module: &Module,
        textures: &mut BTreeMap<String, u32>,
    ) -> Result<Vec<u8>, Error> {
        let named = quoted(name);
        let mut out = Vec::new();
        let record = |out: &mut Vec<u8>, attribute: u8, words: &[u32]| {
            out.extend([4, attribute]);
            out.extend((4 * words.len() as u16).to_le_bytes());
            out.extend(to_bytes(words));
        };
        if let Some(bytes) = program.resources.param_bytes {
            // EIATTR_SMEM_PARAM_SIZE has 16 bits.
            match u16::try_from(bytes) {
                Ok(bytes) => {
                    out.extend([3, 0x18]);
                    out.extend(bytes.to_le_bytes());
                }
                Err(_) => record(&mut out, 0x18, &[bytes]),
            }
        }
        for (index, param) in program.params.iter().enumerate() {
            if param.offset > 0xffff || param.bytes >= 1 << 14 || index > 0xffff {
                let what =
                    format!("parameter {index} of {named}, {} bytes at {:#x}", param.bytes, param.offset);
                return self.unwritable(what, "up to 16,383 bytes below 0x10000 fit");
            }
            if param.name.is_some() {
                self.notes.push(format!(
                    "{name}: an ELF cubin cannot represent the name of parameter {index}, so the writer omits it"
                ));
            }
            record(&mut out, 0x17, &[0, index as u32 | param.offset << 16, param.bytes << 18 | PARAM_FLAGS]);
        }
        let own = &program.samplers;
        if !module.samplers.is_empty() {
            self.notes.push(format!("{name}: the module's textures are written as the kernel's"));
        }
        for sampler in module.samplers.iter().filter(|sampler| !own.contains(sampler)).chain(own) {
            let text = self.checked_name("texture name", &sampler.name)?;
            let symbol = *textures.entry(text.clone()).or_insert_with(|| {
                self.symbols.push(Symbol { name: text, kind: TEXTURE, section: 0, value: 0, size: 0 });
                self.symbols.len() as u32
            });
            record(&mut out, 0x02, &[symbol, sampler.unit]);
        }
        let mut state = program.state.iter();
        while let Some((key, value)) = state.next() {
            if let Some((attribute, _)) = NUMBERS.iter().find(|(_, known)| known == key) {
                record(&mut out, *attribute, &[*value]);
                continue;
            }
            let triple = TRIPLES.iter().find(|(_, known)| key.strip_suffix("_X") == Some(known));
            let rest = triple.and_then(|(attribute, known)| {
                let (y, z) = (state.next()?, state.next()?);
                let fits = y.0 == format!("{known}_Y") && z.0 == format!("{known}_Z");
                fits.then_some((*attribute, [*value, y.1, z.1]))
            });
            let Some((attribute, values)) = rest else {
                let what = format!("state {} of {named}", quoted(key));
                return self
                    .unwritable(what, "use the EIATTR_ names that cuobjdump prints, or remove the state");
            };
            record(&mut out, attribute, &values);
        }
        Ok(out)
    }

    /// Adds blocks of constants as one section per bank. The order of the sections is the order in which the banks
    /// first appear.
    fn banks(&mut self, of: &str, blocks: &[ConstantBlock]) -> Result<Vec<(u32, Bank)>, Error> {
        let mut banks: Vec<(u32, Bank)> = Vec::new();
        for block in blocks {
            let end = u64::from(block.offset) + block.bytes.len() as u64;
            if block.bank > limits::LAST_BANK || end > limits::BANK_BYTES.into() {
                let what = format!("constants of {of} up to byte {end:#x} of bank {}", block.bank);
                return self.unwritable(what, "there are banks 0 to 16 of 64 KiB");
            }
            let (bank, joined) = (block.bank, block.offset as usize);
            let at = banks.iter().position(|(known, _)| *known == bank);
            if at.is_some() || joined != 0 || block.bytes.is_empty() {
                let note = format!("{of}: the blocks of constant bank {bank} are joined to one");
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            let at = at.unwrap_or_else(|| {
                banks.push((bank, Bank { bytes: Vec::new(), size: 0 }));
                banks.len() - 1
            });
            let bytes = &mut banks[at].1.bytes;
            bytes.resize(bytes.len().max(end as usize), 0);
            bytes[joined..end as usize].copy_from_slice(&block.bytes);
        }
        for (_, bank) in &mut banks {
            bank.size = bank.bytes.len() as u64;
        }
        Ok(banks)
    }

    /// Adds the constants and variables of the module, and the words that contain addresses of the variables.
    fn module(&mut self, module: &Module) -> Result<(), Error> {
        let mut banks = self.banks("the module", &module.constants)?;
        let mut need = |bank: u32, end: u64| {
            let at = banks.iter().position(|(known, _)| *known == bank).unwrap_or_else(|| {
                banks.push((bank, Bank { bytes: Vec::new(), size: 0 }));
                banks.len() - 1
            });
            banks[at].1.size = banks[at].1.size.max(end);
        };
        for variable in &module.variables {
            match &variable.place {
                Place::Constant { bank, offset } => {
                    need(*bank, u64::from(*offset) + u64::from(variable.bytes))
                }
                Place::Global { slots, .. } => {
                    slots.iter().for_each(|slot| need(slot.bank, u64::from(slot.offset) + 4));
                }
            }
        }
        let mut sections = BTreeMap::new();
        for (bank, mut contents) in banks {
            if bank > limits::LAST_BANK || contents.size > limits::BANK_BYTES.into() {
                let what = format!("a variable that ends at byte {:#x} of bank {bank}", contents.size);
                return self.unwritable(what, "there are banks 0 to 16 of 64 KiB");
            }
            let filled = contents.bytes.len() as u64;
            if filled != 0 && filled < contents.size {
                self.notes.push(format!("zeros fill constant bank {bank} up to the end of its variables"));
                contents.bytes.resize(contents.size as usize, 0);
            }
            let kind = if filled == 0 { elf::NOBITS } else { elf::PROGBITS };
            let there = contents.bytes.clone();
            let part = Part::new(format!(".nv.constant{bank}"), kind, ALLOC, 0);
            let index = self.push(Part { data: contents.bytes, size: Some(contents.size), ..part });
            sections.insert(bank, (index, there));
        }
        let mut relocations: BTreeMap<u32, Vec<(Slot, u32)>> = BTreeMap::new();
        // `filled` contains the variables with initial contents. `empty` is the total size of the variables without
        // initial contents.
        let (mut filled, mut empty) = (Vec::new(), 0u64);
        let (first, second) = (self.next(), self.next() + 1);
        let contents = |filled: bool| {
            module.variables.iter().any(
                |variable| matches!(&variable.place, Place::Global { init, .. } if init.is_empty() != filled),
            )
        };
        let (any_filled, any_empty) = (contents(true), contents(false));
        for variable in &module.variables {
            let name = self.checked_name("variable name", &variable.name)?;
            let size = u64::from(variable.bytes);
            let (section, value) = match &variable.place {
                Place::Constant { bank, offset } => (sections[bank].0, u64::from(*offset)),
                Place::Global { slots, init } => {
                    let symbol = self.symbols.len() as u32 + 1;
                    for slot in slots {
                        relocations.entry(slot.bank).or_default().push((*slot, symbol));
                    }
                    if init.is_empty() {
                        let at = empty.next_multiple_of(8);
                        empty = at + size;
                        (if any_filled { second } else { first }, at)
                    } else {
                        if init.len() as u64 > size {
                            let what = format!("variable {} with more contents than its size", quoted(&name));
                            return self.unwritable(what, "at most its size fits");
                        }
                        if (init.len() as u64) < size {
                            self.notes.push(format!("zeros fill the first contents of variable {name}"));
                        }
                        let at = filled.len().next_multiple_of(8);
                        filled.resize(at, 0);
                        filled.extend(init);
                        filled.resize(at + size as usize, 0);
                        (first, at as u64)
                    }
                }
            };
            self.symbols.push(Symbol { name, kind: elf::OBJECT, section, value, size });
        }
        if any_filled {
            let part = Part::new(".nv.global.init".to_owned(), elf::PROGBITS, ALLOC | WRITE, 0);
            self.push(Part { data: filled, ..part });
        }
        if any_empty {
            let part = Part::new(".nv.global".to_owned(), elf::NOBITS, ALLOC | WRITE, 0);
            self.push(Part { size: Some(empty), ..part });
        }
        for (bank, slots) in relocations {
            let (target, there) = &sections[&bank];
            let word = |at: u32| {
                let bytes = there.get(at as usize..at as usize + 4);
                bytes.map_or(0, |bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            };
            // The addend is stored in the word that the relocation changes, as in files of nvcc.
            let explicit = slots.iter().any(|(slot, _)| word(slot.offset) != slot.addend);
            let records = slots.iter().map(|(slot, symbol)| Rel {
                r_offset: slot.offset.into(),
                r_sym: *symbol,
                r_type: raw::RelocationType(ABSOLUTE_32),
                r_addend: i64::from(slot.addend as i32),
            });
            self.relocations.push((usize::from(*target), records.collect(), explicit));
        }
        Ok(())
    }

    fn bytes(&self, flags: u32) -> Result<Vec<u8>, object::write::Error> {
        let mut buffer = Vec::new();
        let names_of_relocations: Vec<String> = self
            .relocations
            .iter()
            .map(|(target, _, explicit)| {
                let kind = if *explicit { ".rela" } else { ".rel" };
                format!("{kind}{}", self.parts[*target - 1].name)
            })
            .collect();
        let mut writer = Writer::new(Endianness::Little, self.wide, &mut buffer);
        writer.reserve_file_header();
        let align = if self.wide { 8 } else { 4 };
        let places: Vec<u64> = self
            .parts
            .iter()
            .map(|part| {
                writer.reserve(if part.kind == elf::NOBITS { 0 } else { part.data.len() as u64 }, align)
            })
            .collect();
        let records: Vec<u64> = self
            .relocations
            .iter()
            .map(|(_, records, explicit)| writer.reserve_relocations(records.len(), *explicit))
            .collect();
        writer.reserve_null_section_index();
        let mut names = Vec::new();
        for part in &self.parts {
            names.push(writer.add_section_name(part.name.as_bytes()));
            writer.reserve_section_index();
        }
        let mut rel_names = Vec::new();
        for name in &names_of_relocations {
            rel_names.push(writer.add_section_name(name.as_bytes()));
            writer.reserve_section_index();
        }
        let symtab = writer.reserve_symtab_section_index();
        writer.reserve_strtab_section_index();
        writer.reserve_shstrtab_section_index();
        writer.reserve_null_symbol_index();
        let mut strings = Vec::new();
        for symbol in &self.symbols {
            writer.reserve_symbol_index(None);
            strings.push(writer.add_string(symbol.name.as_bytes()));
        }
        writer.reserve_symtab();
        writer.reserve_strtab()?;
        writer.reserve_shstrtab()?;
        writer.reserve_section_headers();

        writer.write_file_header(&FileHeader {
            os_abi: raw::OsAbi(OS_ABI.0),
            abi_version: OS_ABI.1,
            e_type: raw::FileType(EXECUTABLE),
            e_machine: raw::Machine(elf::MACHINE_CUDA),
            e_entry: 0,
            e_flags: raw::FileFlags(flags),
        })?;
        for (part, place) in self.parts.iter().zip(&places) {
            writer.pad_until(*place);
            if part.kind != elf::NOBITS {
                writer.write(&part.data);
            }
        }
        for (_, records, explicit) in &self.relocations {
            writer.write_align_relocation();
            records.iter().for_each(|record| writer.write_relocation(*explicit, record));
        }
        writer.write_null_symbol();
        for (symbol, string) in self.symbols.iter().zip(strings) {
            let st_name = writer.string_offset(Some(string));
            writer.write_symbol(&Sym {
                section: None,
                st_name,
                // The symbol is global. Kernels also have the flag of entry points.
                st_info: raw::SymbolInfo(1 << 4 | symbol.kind),
                st_other: raw::SymbolOther(if symbol.kind == elf::FUNC { 0x10 } else { 0 }),
                st_shndx: raw::SymbolSection(symbol.section),
                st_value: symbol.value,
                st_size: symbol.size,
            });
        }
        writer.write_strtab();
        writer.write_shstrtab();
        writer.write_null_section_header();
        for ((part, place), name) in self.parts.iter().zip(&places).zip(names) {
            let sh_name = writer.section_name_offset(Some(name));
            writer.write_section_header(&SectionHeader {
                sh_name,
                sh_type: raw::SectionType(part.kind),
                sh_flags: raw::SectionFlags(part.flags),
                sh_addr: 0,
                sh_offset: *place,
                sh_size: part.size.unwrap_or(part.data.len() as u64),
                sh_link: if part.linked { symtab.0 } else { 0 },
                sh_info: part.info,
                sh_addralign: 4,
                sh_entsize: 0,
            });
        }
        for (((target, list, explicit), place), name) in self.relocations.iter().zip(records).zip(rel_names) {
            let target = object::write::elf::SectionIndex(*target as u32);
            writer.write_relocation_section_header(name, target, symtab, place, list.len(), *explicit);
        }
        writer.write_symtab_section_header(1);
        writer.write_strtab_section_header();
        writer.write_shstrtab_section_header();
        Ok(buffer)
    }
}
