//! A machine from hwloc's XML, as `lstopo --of xml` writes it (versions 2 and 3).
//!
//! The format: nested `object` elements, each with a `type` and its contexts as a `cpuset` mask.
//! NUMA nodes are children of the object they are local to. `distances2` and `cpukind` follow. What
//! an object contains is taken from its cpuset, as hwloc defines it. Devices, `Misc` objects and
//! memory-side caches say nothing about sharing between contexts and are passed over.
//!
//! Limits: contexts missing from the export (`complete_cpuset` without `cpuset`) are called
//! offline, although they may only be disallowed. An export distinguishes them only on request
//! (`lstopo --disallowed`).

use crate::core_kinds::{self, Traits};
use crate::nesting::{ReportedDomain, nest};
use crate::{
    Cache, CacheKind, CpuId, CpuSet, Distances, DomainKind, Machine, MachineError, MachineNote,
    NumaNode,
};
use roxmltree::{Document, Node, ParsingOptions};
use std::str::FromStr;

/// More elements than an export of 8,192 contexts with every cache has.
const MOST_ELEMENTS: u32 = 1_000_000;

impl Machine {
    /// Reads hwloc's XML. Errors name the line. They are: no XML, not a topology, hwloc 1's format,
    /// or an object that lacks its type, number or contexts.
    pub fn from_hwloc_xml(text: &str) -> Result<Self, MachineError> {
        let options = ParsingOptions {
            allow_dtd: true,
            nodes_limit: MOST_ELEMENTS,
            ..ParsingOptions::default()
        };
        let document = Document::parse_with_options(text, options)
            .map_err(|error| MachineError::malformed("hwloc XML", error.to_string()))?;
        Reader { document: &document }.machine()
    }
}

struct Reader<'a> {
    document: &'a Document<'a>,
}

impl Reader<'_> {
    fn machine(&self) -> Result<Machine, MachineError> {
        let topology = self.document.root_element();
        if topology.tag_name().name() != "topology" {
            return Err(self.fail(
                topology,
                format!("expected <topology>, found <{}>", topology.tag_name().name()),
            ));
        }
        let version = topology.attribute("version").unwrap_or("1");
        if !matches!(version.split('.').next(), Some("2" | "3")) {
            let remedy = "export it again with hwloc 2 or 3: lstopo --of xml FILE.xml";
            return Err(self.fail(
                topology,
                format!("format version {version}, pinwise reads 2 and 3; {remedy}"),
            ));
        }
        let objects = || topology.descendants().filter(|node| node.has_tag_name("object"));
        let machine = objects()
            .find(|object| object.attribute("type") == Some("Machine"))
            .ok_or_else(|| self.fail(topology, "no object of type Machine".into()))?;

        let mut found = Vec::new();
        let mut caches = Vec::new();
        let mut nodes = Vec::new();
        let mut online = CpuSet::new();
        for object in objects() {
            let kind = object
                .attribute("type")
                .ok_or_else(|| self.fail(object, "an object without type".into()))?;
            match kind {
                "PU" => {
                    let cpus = self.cpus(object, "cpuset")?;
                    if cpus.len() != 1 {
                        return Err(self.fail(
                            object,
                            "a PU is one context; its cpuset holds none or several".into(),
                        ));
                    }
                    online = online.union(&cpus);
                }
                "NUMANode" => nodes.push((
                    object,
                    NumaNode {
                        os_index: self.required(object, "os_index")?,
                        cpus: self.cpus(object, "cpuset")?,
                        memory: self.number(object, "local_memory")?,
                        allowed: true,
                    },
                )),
                _ => {
                    let cache = self.cache(object, kind)?;
                    if let Some(domain) = domain(object, kind, cache.as_ref()) {
                        let cpus = self.cpus(object, "cpuset")?;
                        found.push(ReportedDomain {
                            kind: domain,
                            os_index: self.number(object, "os_index")?,
                            cpus,
                        });
                    }
                    caches.extend(cache);
                }
            }
        }
        if online.is_empty() {
            return Err(self.fail(machine, "no PU: no contexts to place anything on".into()));
        }
        nodes.sort_by_key(|(_, node)| node.os_index);
        let local = |(_, node): &(Node, NumaNode)| ReportedDomain {
            kind: DomainKind::Numa,
            os_index: Some(node.os_index),
            cpus: node.cpus.clone(),
        };
        found.extend(nodes.iter().map(local));

        let (root, mut notes) = nest(&online, found)?;
        let distances = self.distances(topology, &nodes, &mut notes)?;
        let mut result = Machine::from_tree(self.name(topology), root);
        result.set_kinds(self.kinds(topology, &online)?);
        caches.iter_mut().for_each(|cache| cache.cpus = cache.cpus.intersection(&online));
        caches.retain(|cache| !cache.cpus.is_empty());
        caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        result.caches = caches;
        if !nodes.is_empty() {
            result.numa = nodes.into_iter().map(|(_, node)| node).collect();
        }
        if machine.has_attribute("allowed_nodeset") {
            let allowed = self.cpus(machine, "allowed_nodeset")?;
            result
                .numa
                .iter_mut()
                .for_each(|node| node.allowed = allowed.contains(CpuId(node.os_index)));
        }
        if machine.has_attribute("allowed_cpuset") {
            result.allowed = self.cpus(machine, "allowed_cpuset")?.intersection(&online);
        }
        if machine.has_attribute("complete_cpuset") {
            result.offline = self.cpus(machine, "complete_cpuset")?.difference(&online);
        }
        result.distances = distances;
        result.notes = notes;
        Ok(result)
    }

    fn fail(&self, node: Node, reason: String) -> MachineError {
        let line = self.document.text_pos_at(node.range().start).row;
        MachineError::malformed(format!("hwloc XML, line {line}"), reason)
    }

    fn number<T: FromStr>(&self, node: Node, name: &str) -> Result<Option<T>, MachineError> {
        let Some(text) = node.attribute(name) else { return Ok(None) };
        match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            // hwloc writes -1, or 4294967295, for a number that is not known.
            Err(_) if text.trim() == "-1" => Ok(None),
            Err(_) => Err(self.fail(node, format!("{name}=\"{text}\" is not a number"))),
        }
    }

    fn required<T: FromStr>(&self, node: Node, name: &str) -> Result<T, MachineError> {
        self.number(node, name)?.ok_or_else(|| self.fail(node, format!("an object without {name}")))
    }

    /// A mask: contexts, or the numbers of NUMA nodes.
    fn cpus(&self, node: Node, name: &str) -> Result<CpuSet, MachineError> {
        let text = node
            .attribute(name)
            .ok_or_else(|| self.fail(node, format!("an object without {name}")))?;
        if text.contains("0xf...f") {
            return Err(self.fail(node, format!("{name} is infinite, no machine is")));
        }
        CpuSet::parse_mask(text).map_err(|error| self.fail(node, format!("{name}: {error}")))
    }

    /// `L2Cache`, `L1iCache`.
    fn cache(&self, object: Node, kind: &str) -> Result<Option<Cache>, MachineError> {
        let Some(name) = kind.strip_prefix('L').and_then(|name| name.strip_suffix("Cache")) else {
            return Ok(None);
        };
        let Ok(level) = name.trim_end_matches(['d', 'i']).parse::<u8>() else { return Ok(None) };
        let kind = match object.attribute("cache_type") {
            Some("1") => CacheKind::Data,
            Some("2") => CacheKind::Instruction,
            _ => CacheKind::Unified,
        };
        Ok(Some(Cache {
            level,
            kind,
            size: self.number(object, "cache_size")?.filter(|&size: &u64| size > 0),
            line: self.number(object, "cache_linesize")?.filter(|&line: &u32| line > 0),
            // -1 means fully associative to hwloc, 0 unknown.
            ways: self.number(object, "cache_associativity")?.filter(|&ways: &u32| ways > 0),
            cpus: self.cpus(object, "cpuset")?,
        }))
    }

    /// The latencies between NUMA nodes, in the order of `nodes`.
    fn distances(
        &self,
        topology: Node,
        nodes: &[(Node, NumaNode)],
        notes: &mut Vec<MachineNote>,
    ) -> Result<Option<Distances>, MachineError> {
        let latencies = |node: &Node| {
            node.has_tag_name("distances2")
                && node.attribute("type") == Some("NUMANode")
                && node.attribute("name").is_none_or(|name| name == "NUMALatency")
        };
        let Some(element) = topology.descendants().find(latencies) else { return Ok(None) };
        let numbers = |tag: &str| -> Result<Vec<u64>, MachineError> {
            let texts = element
                .descendants()
                .filter(|node| node.has_tag_name(tag))
                .filter_map(|node| node.text());
            let words = texts.flat_map(str::split_whitespace);
            words
                .map(|word| {
                    word.parse().map_err(|_| {
                        self.fail(element, format!("<{tag}>: '{word}' is not a number"))
                    })
                })
                .collect()
        };
        let (indexes, values) = (numbers("indexes")?, numbers("u64values")?);
        let attribute =
            if element.attribute("indexing") == Some("gp") { "gp_index" } else { "os_index" };
        let place = |(object, _): &(Node, NumaNode)| {
            let own: u64 = object.attribute(attribute)?.parse().ok()?;
            indexes.iter().position(|&index| index == own)
        };
        let places: Option<Vec<usize>> = nodes.iter().map(place).collect();
        let Some(places) =
            places.filter(|_| values.len() == indexes.len().saturating_mul(indexes.len()))
        else {
            notes.push(MachineNote::DistancesForeign);
            return Ok(None);
        };
        let cell = |row: usize, column: usize| {
            u32::try_from(values[row * indexes.len() + column]).unwrap_or(u32::MAX)
        };
        let rows = places
            .iter()
            .map(|&row| places.iter().map(|&column| cell(row, column)).collect())
            .collect();
        Ok(Some(Distances(rows)))
    }

    fn kinds(&self, topology: Node, online: &CpuSet) -> Result<Vec<crate::CoreKind>, MachineError> {
        let mut groups = Vec::new();
        let mut rest = online.clone();
        for element in topology.descendants().filter(|node| node.has_tag_name("cpukind")) {
            let info = |name: &str| {
                let infos = element.children().filter(|node| node.has_tag_name("info"));
                infos
                    .filter(|node| node.attribute("name") == Some(name))
                    .find_map(|node| node.attribute("value"))
            };
            let megahertz = |name| {
                info(name)
                    .and_then(|text| text.parse::<u64>().ok())
                    .and_then(|mhz| mhz.checked_mul(1000))
            };
            let cpus = self.cpus(element, "cpuset")?.intersection(&rest);
            let traits = Traits {
                name: info("CoreType").map(Into::into),
                capacity: info("LinuxCapacity").and_then(|text| text.parse().ok()),
                base: megahertz("FrequencyBaseMHz"),
                max: megahertz("FrequencyMaxMHz"),
            };
            rest = rest.difference(&cpus);
            if !cpus.is_empty() {
                groups.push((traits, cpus));
            }
        }
        if !rest.is_empty() {
            groups.push((Traits::default(), rest));
        }
        Ok(core_kinds::rank(groups))
    }

    fn name(&self, topology: Node) -> String {
        let infos = || topology.descendants().filter(|node| node.has_tag_name("info"));
        let value = |name: &str| {
            infos().find(|node| node.attribute("name") == Some(name))?.attribute("value")
        };
        let name =
            value("CPUModel").or_else(|| value("DMIProductName")).unwrap_or("unknown processor");
        name.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The domain an object is, if it is one.
fn domain(object: Node, kind: &str, cache: Option<&Cache>) -> Option<DomainKind> {
    // hwloc's number of Linux clusters among the kinds of groups.
    let cluster = || {
        object.attribute("subtype") == Some("Cluster") || object.attribute("kind") == Some("222")
    };
    Some(match (kind, cache) {
        ("Package", _) => DomainKind::Package,
        ("Die", _) => DomainKind::Die,
        ("Core", _) => DomainKind::Core,
        ("Group", _) if cluster() => DomainKind::Cluster,
        ("Group", _) => DomainKind::Group,
        (_, Some(cache)) if cache.kind != CacheKind::Instruction => match cache.level {
            2 => DomainKind::L2,
            3 => DomainKind::L3,
            4 => DomainKind::L4,
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        Machine::from_hwloc_xml(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_line_and_the_remedy() {
        assert!(reason("<topology").starts_with("hwloc XML: "));
        assert!(reason("<html/>").contains("expected <topology>, found <html>"));
        let old = reason("<topology>\n<object type=\"System\"/></topology>");
        assert!(old.contains("version 1") && old.contains("lstopo --of xml"), "{old}");
        let head = "<topology version=\"2.0\">\n";
        assert!(reason(&format!("{head}</topology>")).contains("no object of type Machine"));
        let machine =
            |inner: &str| format!("{head}<object type=\"Machine\">\n{inner}</object></topology>");
        assert!(reason(&machine("")).contains("no PU"));
        assert_eq!(
            reason(&machine("<object type=\"PU\" os_index=\"0\"/>")),
            "hwloc XML, line 3: an object without cpuset"
        );
        assert!(
            reason(&machine("<object type=\"PU\" cpuset=\"0x3\"/>")).contains("none or several")
        );
        assert!(reason(&machine("<object type=\"PU\" cpuset=\"0xf...f\"/>")).contains("infinite"));
        assert!(reason(&machine("<object cpuset=\"0x1\"/>")).contains("without type"));
        assert!(
            reason(&machine("<object type=\"Core\" os_index=\"x\" cpuset=\"0x1\"/>"))
                .contains("not a number")
        );
    }

    #[test]
    fn entities_do_not_blow_up() {
        let mut text = String::from("<!DOCTYPE topology [<!ENTITY a0 \"aaaaaaaaaa\">");
        for level in 1..12 {
            let inner = format!("&a{};", level - 1).repeat(10);
            text += &format!("<!ENTITY a{level} \"{inner}\">");
        }
        text += "]><topology version=\"2.0\">&a11;</topology>";
        assert!(Machine::from_hwloc_xml(&text).is_err());
    }

    #[test]
    fn devices_and_misc_objects_are_passed_over() {
        let text = "<topology version=\"3.0\">\
            <object type=\"Machine\" cpuset=\"0x3\" complete_cpuset=\"0x7\">\
            <object type=\"Package\" os_index=\"-1\" cpuset=\"0x3\">\
            <info name=\"CPUModel\" value=\"A  B\"/>\
            <object type=\"PU\" os_index=\"0\" cpuset=\"0x1\"/>\
            <object type=\"PU\" os_index=\"1\" cpuset=\"0x2\"/>\
            <object type=\"Bridge\"><object type=\"PCIDev\"/></object>\
            <object type=\"Misc\"/></object></object></topology>";
        let machine = Machine::from_hwloc_xml(text).unwrap();
        assert_eq!(
            (machine.name.as_str(), machine.contexts.len(), machine.numa.len()),
            ("A B", 2, 1)
        );
        assert_eq!(machine.offline.to_string(), "2");
    }
}
