//! Instances and adapters.

use std::ffi::c_char;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::device::Device;
use crate::object::{borrow, call, error_text, give, label, release, Errors, Object};
use crate::types::*;
use crate::{features, limits};

pub struct Instance {
    instance: wgpu::Instance,
    backends: wgpu::Backends,
}

pub struct Adapter {
    adapter: wgpu::Adapter,
}

impl Object for Instance {
    fn errors(&self) -> Option<&Arc<Errors>> {
        None
    }
}
impl Object for Adapter {
    fn errors(&self) -> Option<&Arc<Errors>> {
        None
    }
}

/// The result of a future of the crate: natively they are ready at once.
fn now<T>(future: impl std::future::Future<Output = T>) -> Result<T, String> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err("the library did not answer at once".into()),
    }
}

/// WGPUInstanceBackend; 0 means all.
fn backends(flags: Flags) -> wgpu::Backends {
    let names = [
        (1, wgpu::Backends::VULKAN),
        (1 << 2, wgpu::Backends::METAL),
        (1 << 3, wgpu::Backends::DX12),
    ];
    let wanted = names
        .iter()
        .filter(|(bit, _)| flags == 0 || flags & bit != 0);
    wanted.fold(wgpu::Backends::empty(), |set, &(_, one)| set | one)
}

#[no_mangle]
pub unsafe extern "C" fn wgpuCreateInstance(
    descriptor: *const InstanceDescriptor,
) -> InstanceHandle {
    let chain = unsafe { descriptor.as_ref() }.map_or(std::ptr::null(), |d| d.next);
    let extras = unsafe { find::<InstanceExtras>(chain, INSTANCE_EXTRAS) };
    let backends = backends(extras.map_or(0, |e| e.backends));
    // No device yet, nobody to report to: null says that it failed.
    let made = guard_rs::caught(|| {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        give(Instance { instance, backends })
    });
    made.unwrap_or(std::ptr::null())
}

#[no_mangle]
pub unsafe extern "C" fn wgpuInstanceRelease(instance: InstanceHandle) {
    unsafe { release("wgpuInstanceRelease", instance) }
}

/// The number of adapters; `out` is null or has room for them.
#[no_mangle]
pub unsafe extern "C" fn wgpuInstanceEnumerateAdapters(
    instance: InstanceHandle,
    options: *const EnumerateOptions,
    out: *mut AdapterHandle,
) -> usize {
    unsafe {
        call("wgpuInstanceEnumerateAdapters", instance, 0, |instance| {
            let wanted = options
                .as_ref()
                .map_or(instance.backends, |o| backends(o.backends));
            let adapters = now(instance.instance.enumerate_adapters(wanted))?;
            let count = adapters.len();
            if !out.is_null() {
                for (i, adapter) in adapters.into_iter().enumerate() {
                    *out.add(i) = give(Adapter { adapter });
                }
            }
            Ok(count)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuAdapterRelease(adapter: AdapterHandle) {
    unsafe { release("wgpuAdapterRelease", adapter) }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuAdapterHasFeature(adapter: AdapterHandle, name: u32) -> Bool {
    unsafe {
        call("wgpuAdapterHasFeature", adapter, 0, |adapter| {
            Ok(features::has(adapter.adapter.features(), name).into())
        })
    }
}

/// Memory for C: exactly as long as the slice, taken back by `take`.
fn give_slice<T>(values: Vec<T>) -> (*const T, usize) {
    let values = values.into_boxed_slice();
    let count = values.len();
    (Box::into_raw(values).cast_const().cast(), count)
}

unsafe fn take<T>(data: *const T, count: usize) {
    if !data.is_null() {
        let slice = std::ptr::slice_from_raw_parts_mut(data.cast_mut(), count);
        drop(unsafe { Box::from_raw(slice) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuAdapterGetFeatures(
    adapter: AdapterHandle,
    out: *mut SupportedFeatures,
) {
    unsafe {
        call("wgpuAdapterGetFeatures", adapter, (), |adapter| {
            let out = out.as_mut().ok_or("the result's address is null")?;
            (out.features, out.count) = give_slice(features::numbers(adapter.adapter.features()));
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuSupportedFeaturesFreeMembers(features: SupportedFeatures) {
    unsafe { take(features.features, features.count) }
}

fn give_text(text: &str) -> StringView {
    let (data, length) = give_slice(text.as_bytes().to_vec());
    StringView {
        data: data.cast::<c_char>(),
        length,
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuAdapterGetInfo(adapter: AdapterHandle, out: *mut AdapterInfo) -> u32 {
    unsafe {
        call("wgpuAdapterGetInfo", adapter, STATUS_ERROR, |adapter| {
            let out = out.as_mut().ok_or("the result's address is null")?;
            let info = adapter.adapter.get_info();
            out.vendor = give_text(&info.driver);
            out.architecture = StringView::EMPTY;
            out.device = give_text(&info.name);
            out.description = give_text(&info.driver_info);
            out.backend = match info.backend {
                wgpu::Backend::Noop => 1,
                wgpu::Backend::BrowserWebGpu => 2,
                wgpu::Backend::Dx12 => 4,
                wgpu::Backend::Metal => 5,
                wgpu::Backend::Vulkan => 6,
                wgpu::Backend::Gl => 8,
            };
            out.kind = match info.device_type {
                wgpu::DeviceType::DiscreteGpu => 1,
                wgpu::DeviceType::IntegratedGpu => 2,
                wgpu::DeviceType::Cpu => 3,
                wgpu::DeviceType::Other | wgpu::DeviceType::VirtualGpu => 4,
            };
            out.vendor_id = info.vendor;
            out.device_id = info.device;
            out.subgroup_min_size = info.subgroup_min_size;
            out.subgroup_max_size = info.subgroup_max_size;
            Ok(STATUS_SUCCESS)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuAdapterInfoFreeMembers(info: AdapterInfo) {
    for view in [
        info.vendor,
        info.architecture,
        info.device,
        info.description,
    ] {
        unsafe { take(view.data, view.length) };
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuAdapterGetLimits(adapter: AdapterHandle, out: *mut Limits) -> u32 {
    unsafe {
        call("wgpuAdapterGetLimits", adapter, STATUS_ERROR, |adapter| {
            let out = out.as_mut().ok_or("the result's address is null")?;
            limits::tell(&adapter.adapter.limits(), out);
            Ok(STATUS_SUCCESS)
        })
    }
}

/// Of wisp_webgpu.h: the number of configurations, of which the first `capacity` are written.
#[no_mangle]
pub unsafe extern "C" fn wispAdapterGetMatrixConfigs(
    adapter: AdapterHandle,
    out: *mut MatrixConfig,
    capacity: usize,
) -> usize {
    let number = |kind: wgpu::CooperativeScalarType| match kind {
        wgpu::CooperativeScalarType::F16 => 1,
        wgpu::CooperativeScalarType::F32 => 2,
        wgpu::CooperativeScalarType::I32 => 3,
        wgpu::CooperativeScalarType::U32 => 4,
    };
    unsafe {
        call("wispAdapterGetMatrixConfigs", adapter, 0, |adapter| {
            let configs = adapter.adapter.cooperative_matrix_properties();
            let room = if out.is_null() { 0 } else { capacity };
            for (i, config) in configs.iter().take(room).enumerate() {
                *out.add(i) = MatrixConfig {
                    m: config.m_size,
                    n: config.n_size,
                    k: config.k_size,
                    input: number(config.ab_type),
                    accumulator: number(config.cr_type),
                };
            }
            Ok(configs.len())
        })
    }
}

unsafe fn request(
    adapter: &Adapter,
    descriptor: &DeviceDescriptor,
) -> Result<*const Device, String> {
    let name = unsafe { descriptor.label.text() };
    let mut required_limits = adapter.adapter.limits();
    if let Some(wanted) = unsafe { descriptor.limits.as_ref() } {
        limits::apply(wanted, &mut required_limits);
    }
    let asked = unsafe { slice(descriptor.features, descriptor.feature_count) };
    let wanted = wgpu::DeviceDescriptor {
        label: label(&name),
        required_features: features::set(asked)?,
        required_limits,
        // SAFETY: matrices are used by kernels that were checked against the CPU.
        experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
        ..Default::default()
    };
    let made = now(adapter.adapter.request_device(&wanted))?;
    let (device, queue) = made.map_err(|error| error_text(&error))?;
    let errors = Errors::new(descriptor.error, descriptor.lost);
    Ok(give(Device::new(device, queue, errors)))
}

#[no_mangle]
pub unsafe extern "C" fn wgpuAdapterRequestDevice(
    adapter: AdapterHandle,
    descriptor: *const DeviceDescriptor,
    info: DeviceCallbackInfo,
) -> Future {
    let result = guard_rs::caught(|| unsafe {
        request(
            borrow(adapter, "adapter")?,
            borrow(descriptor, "descriptor")?,
        )
    });
    let (status, device, message) = match result.unwrap_or_else(Err) {
        Ok(device) => (CALLBACK_SUCCESS, device, String::new()),
        Err(message) => (CALLBACK_ERROR, std::ptr::null(), message),
    };
    if let Some(callback) = info.callback {
        let message = StringView::of(&message);
        unsafe { callback(status, device, message, info.user1, info.user2) };
    }
    Future { id: 0 }
}

/// The crate never logs by itself.
#[no_mangle]
pub extern "C" fn wgpuSetLogLevel(_level: u32) {}

/// The crate's version, a byte each from the highest.
#[no_mangle]
pub extern "C" fn wgpuGetVersion() -> u32 {
    0x1d00_0400
}
