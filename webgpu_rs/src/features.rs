//! Features that wisp or its probe ask for: the headers' numbers and the crate's names.

use wgpu::Features;

/// WGPUFeatureName and WGPUNativeFeature.
const NAMES: [(u32, Features); 9] = [
    (0x0000_0009, Features::TIMESTAMP_QUERY),
    (0x0000_000B, Features::SHADER_F16),
    (0x0003_0001, Features::IMMEDIATES),
    (0x0003_0021, Features::SUBGROUP),
    (0x0003_0023, Features::SUBGROUP_BARRIER),
    (0x0003_0024, Features::TIMESTAMP_QUERY_INSIDE_ENCODERS),
    (0x0003_0025, Features::TIMESTAMP_QUERY_INSIDE_PASSES),
    (0x0003_0026, Features::SHADER_INT64),
    (0x0003_003B, Features::EXPERIMENTAL_COOPERATIVE_MATRIX),
];

pub fn has(set: Features, name: u32) -> bool {
    NAMES
        .iter()
        .any(|&(number, feature)| number == name && set.contains(feature))
}

/// The numbers of the features of a set.
pub fn numbers(set: Features) -> Vec<u32> {
    let known = NAMES.iter().filter(|(_, feature)| set.contains(*feature));
    known.map(|&(number, _)| number).collect()
}

/// The set of these features; an error names the first unknown one.
pub fn set(names: &[u32]) -> Result<Features, String> {
    names.iter().try_fold(Features::empty(), |set, name| {
        let found = NAMES.iter().find(|(number, _)| number == name);
        found
            .map(|&(_, feature)| set | feature)
            .ok_or_else(|| format!("unknown feature {name:#x}"))
    })
}
