//! Devices.

use std::sync::Arc;

use crate::object::{call, error_text, give, release, Errors, Object};
use crate::queue::Queue;
use crate::types::*;
use crate::{features, limits};

pub struct Device {
    pub device: wgpu::Device,
    queue: wgpu::Queue,
    pub errors: Arc<Errors>,
}

impl Object for Device {
    fn errors(&self) -> Option<&Arc<Errors>> {
        Some(&self.errors)
    }
}

impl Device {
    pub fn new(device: wgpu::Device, queue: wgpu::Queue, errors: Arc<Errors>) -> Device {
        let target = errors.clone();
        device.on_uncaptured_error(Arc::new(move |error| match error {
            wgpu::Error::OutOfMemory { .. } => {
                target.report(ERROR_OUT_OF_MEMORY, &error_text(&error));
            }
            wgpu::Error::Validation { description, .. } => {
                target.report(ERROR_VALIDATION, &description);
            }
            wgpu::Error::Internal { description, .. } => {
                target.report(ERROR_INTERNAL, &description);
            }
        }));
        let target = errors.clone();
        device.set_device_lost_callback(move |reason, message| {
            let reason = match reason {
                wgpu::DeviceLostReason::Unknown => LOST_UNKNOWN,
                wgpu::DeviceLostReason::Destroyed => LOST_DESTROYED,
            };
            target.lose(reason, &message);
        });
        Device {
            device,
            queue,
            errors,
        }
    }
}

/// Runs `body`, which makes an object, unless the device is lost: the crate makes objects for lost
/// devices without a word.
///
/// # Safety
/// `device` is null or a handle.
pub unsafe fn create<T>(
    name: &str,
    device: *const Device,
    body: impl FnOnce(&Device) -> Result<*const T, String>,
) -> *const T {
    unsafe {
        call(name, device, std::ptr::null(), |device| {
            device.errors.alive()?;
            body(device)
        })
    }
}

impl Drop for Device {
    /// Objects of the device may live on; its callbacks' targets need not.
    fn drop(&mut self) {
        self.errors.close();
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceRelease(device: *const Device) {
    unsafe { release("wgpuDeviceRelease", device) }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceDestroy(device: *const Device) {
    unsafe {
        call("wgpuDeviceDestroy", device, (), |device| {
            device.device.destroy();
            device.errors.lose(LOST_DESTROYED, "the device was destroyed");
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceGetQueue(device: *const Device) -> *const Queue {
    unsafe {
        call("wgpuDeviceGetQueue", device, std::ptr::null(), |device| {
            Ok(give(Queue {
                queue: device.queue.clone(),
                errors: device.errors.clone(),
            }))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceGetLimits(device: *const Device, out: *mut Limits) -> u32 {
    unsafe {
        call("wgpuDeviceGetLimits", device, STATUS_ERROR, |device| {
            let out = out.as_mut().ok_or("the result's address is null")?;
            limits::tell(&device.device.limits(), out);
            Ok(STATUS_SUCCESS)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceHasFeature(device: *const Device, name: u32) -> Bool {
    unsafe {
        call("wgpuDeviceHasFeature", device, 0, |device| {
            Ok(features::has(device.device.features(), name).into())
        })
    }
}

/// Runs due callbacks. With `wait` it returns when all submitted work is done, whatever `_index`.
/// True: nothing is in flight any more.
#[no_mangle]
pub unsafe extern "C" fn wgpuDevicePoll(
    device: *const Device,
    wait: Bool,
    _index: *const u64,
) -> Bool {
    unsafe {
        call("wgpuDevicePoll", device, 0, |device| {
            let kind = if wait != 0 {
                wgpu::PollType::wait_indefinitely()
            } else {
                wgpu::PollType::Poll
            };
            let status = device
                .device
                .poll(kind)
                .map_err(|error| error_text(&error))?;
            Ok(status.is_queue_empty().into())
        })
    }
}
