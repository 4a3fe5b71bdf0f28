//! Limits, in both directions.

use crate::types::{Limits, UNDEFINED_U32, UNDEFINED_U64};

macro_rules! for_each_limit {
    ($apply:ident) => {
        $apply! {
            max_texture_dimension_1d: UNDEFINED_U32,
            max_texture_dimension_2d: UNDEFINED_U32,
            max_texture_dimension_3d: UNDEFINED_U32,
            max_texture_array_layers: UNDEFINED_U32,
            max_bind_groups: UNDEFINED_U32,
            max_bindings_per_bind_group: UNDEFINED_U32,
            max_dynamic_uniform_buffers_per_pipeline_layout: UNDEFINED_U32,
            max_dynamic_storage_buffers_per_pipeline_layout: UNDEFINED_U32,
            max_sampled_textures_per_shader_stage: UNDEFINED_U32,
            max_samplers_per_shader_stage: UNDEFINED_U32,
            max_storage_buffers_per_shader_stage: UNDEFINED_U32,
            max_storage_textures_per_shader_stage: UNDEFINED_U32,
            max_uniform_buffers_per_shader_stage: UNDEFINED_U32,
            max_uniform_buffer_binding_size: UNDEFINED_U64,
            max_storage_buffer_binding_size: UNDEFINED_U64,
            min_uniform_buffer_offset_alignment: UNDEFINED_U32,
            min_storage_buffer_offset_alignment: UNDEFINED_U32,
            max_vertex_buffers: UNDEFINED_U32,
            max_buffer_size: UNDEFINED_U64,
            max_vertex_attributes: UNDEFINED_U32,
            max_vertex_buffer_array_stride: UNDEFINED_U32,
            max_inter_stage_shader_variables: UNDEFINED_U32,
            max_color_attachments: UNDEFINED_U32,
            max_color_attachment_bytes_per_sample: UNDEFINED_U32,
            max_compute_workgroup_storage_size: UNDEFINED_U32,
            max_compute_invocations_per_workgroup: UNDEFINED_U32,
            max_compute_workgroup_size_x: UNDEFINED_U32,
            max_compute_workgroup_size_y: UNDEFINED_U32,
            max_compute_workgroup_size_z: UNDEFINED_U32,
            max_compute_workgroups_per_dimension: UNDEFINED_U32,
            max_immediate_size: UNDEFINED_U32,
        }
    };
}

/// Fills in what the program did not leave undefined.
pub fn apply(wanted: &Limits, limits: &mut wgpu::Limits) {
    macro_rules! read {
        ($($name:ident: $undefined:ident,)*) => {
            $(if wanted.$name != $undefined {
                limits.$name = wanted.$name;
            })*
        };
    }
    for_each_limit!(read);
}

pub fn tell(limits: &wgpu::Limits, out: &mut Limits) {
    macro_rules! write {
        ($($name:ident: $undefined:ident,)*) => { $(out.$name = limits.$name;)* };
    }
    for_each_limit!(write);
    // The crate has no such limit.
    out.max_bind_groups_plus_vertex_buffers = limits.max_bind_groups + limits.max_vertex_buffers;
}
