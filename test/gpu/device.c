// SPDX-License-Identifier: GPL-2.0-only
#include "device.h"

#include <string.h>

#include "gpu.h"
#include "regs.h"
#include "vfio_user.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Registers are dwords; QEMU may split or join accesses. */
static void read_registers(struct gpu *gpu, uint64_t offset, uint8_t *data, uint32_t size_bytes)
{
	uint32_t done = 0, value, in_dword, n;

	while (done < size_bytes) {
		in_dword = (offset + done) % 4;
		n = smaller(4 - in_dword, size_bytes - done);
		value = regs_read(gpu, (offset + done) / 4);
		memcpy(data + done, (uint8_t *)&value + in_dword, n);
		done += n;
	}
}

static void write_registers(struct gpu *gpu, uint64_t offset, const uint8_t *data,
			    uint32_t size_bytes)
{
	uint32_t done, value;

	if (offset % 4 || size_bytes % 4) {
		report_violation(&gpu->report, "a write of %u bytes to register byte %#llx",
				 size_bytes, (unsigned long long)offset);
		return;
	}
	for (done = 0; done < size_bytes; done += 4) {
		memcpy(&value, data + done, sizeof(value));
		regs_write(gpu, (offset + done) / 4, value);
	}
}

static void ring(struct gpu *gpu, uint64_t offset, const void *data, uint32_t size_bytes)
{
	uint64_t value = 0;

	if (offset % 4 || size_bytes > sizeof(value)) {
		report_violation(&gpu->report, "a write of %u bytes to doorbell byte %#llx",
				 size_bytes, (unsigned long long)offset);
		return;
	}
	memcpy(&value, data, size_bytes);
	queues_ring(gpu, offset / 4, value);
}

static void device_read(void *owner, unsigned int region, uint64_t offset, void *data,
			uint32_t size_bytes)
{
	struct gpu *gpu = owner;

	switch (region) {
	case PCI_BAR_VRAM:
		memcpy(data, gpu->vram + offset, size_bytes);
		return;
	case PCI_BAR_REGISTERS:
		read_registers(gpu, offset, data, size_bytes);
		return;
	case VFIO_USER_ROM:
		memcpy(data, gpu->rom + offset, size_bytes);
		return;
	case VFIO_USER_CONFIG:
		pci_read(&gpu->pci, offset, data, size_bytes);
		return;
	}
}

static void device_write(void *owner, unsigned int region, uint64_t offset, const void *data,
			 uint32_t size_bytes)
{
	struct gpu *gpu = owner;

	switch (region) {
	case PCI_BAR_VRAM:
		memcpy(gpu->vram + offset, data, size_bytes);
		return;
	case PCI_BAR_DOORBELL:
		ring(gpu, offset, data, size_bytes);
		return;
	case PCI_BAR_REGISTERS:
		write_registers(gpu, offset, data, size_bytes);
		return;
	case VFIO_USER_CONFIG:
		pci_write(&gpu->pci, offset, data, size_bytes);
		return;
	}
}

static void device_reset(void *owner)
{
	struct gpu *gpu = owner;

	report_log(&gpu->report, REPORT_ALWAYS, "reset of the device");
	gpu_reset(gpu);
}

static const struct vfio_user_ops ops = { device_read, device_write, device_reset };

static int interrupt(void *arg)
{
	return vfio_user_interrupt(arg);
}

void device_init(struct vfio_user *server, struct gpu *gpu)
{
	unsigned int i;

	memset(server->regions, 0, sizeof(server->regions));
	for (i = 0; i < VFIO_USER_REGIONS; i++)
		server->regions[i].fd = -1;
	server->regions[PCI_BAR_VRAM] = (struct vfio_user_region){ gpu->vram_bytes, gpu->vram_fd };
	server->regions[PCI_BAR_DOORBELL].size_bytes = PCI_DOORBELL_BYTES;
	server->regions[PCI_BAR_REGISTERS].size_bytes = gpu->asic->register_bytes;
	server->regions[VFIO_USER_ROM].size_bytes = PCI_ROM_BYTES;
	server->regions[VFIO_USER_CONFIG].size_bytes = PCI_CONFIG_BYTES;
	server->ops = &ops;
	server->owner = gpu;
	server->guest = &gpu->guest;
	server->report = &gpu->report;
	server->listen_fd = -1;
	server->fd = -1;
	server->interrupt_fd = -1;
	gpu->interrupt = interrupt;
	gpu->interrupt_arg = server;
}
