// SPDX-License-Identifier: GPL-2.0-only
/* The test program is QEMU, at the other end of a socket pair. */
#include "machine.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "vfio_user.h"

enum { VERSION = 1, DMA_MAP, DMA_UNMAP, INFO, REGION_INFO, SET_IRQS = 8, READ, WRITE, RESET = 13 };
enum { NO_REPLY = 0x10, ERROR = 0x20 };

struct header {
	uint16_t id, command;
	uint32_t size_bytes, flags, error;
};

struct region_access {
	uint64_t offset;
	uint32_t region, count;
};

static struct vfio_user *server;
static int client = -1;
static uint8_t reply[1 << 17];

static int setup(void **state)
{
	int fds[2];

	machine_setup(state);
	server = calloc(1, sizeof(*server));
	assert_non_null(server);
	device_init(server, machine.gpu);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	server->fd = fds[0];
	client = fds[1];
	return 0;
}

static int teardown(void **state)
{
	(void)close(client);
	server->guest = &machine.gpu->guest;
	vfio_user_close(server);
	free(server);
	return machine_teardown(state);
}

static void send_message(uint16_t command, uint32_t flags, const void *data, size_t size_bytes,
			 int fd)
{
	struct header header = { 7, command, sizeof(header) + size_bytes, flags, 0 };
	struct iovec parts[] = { { &header, sizeof(header) }, { (void *)data, size_bytes } };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = size_bytes ? 2 : 1 };
	struct cmsghdr *c;

	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	assert_int_equal(sendmsg(client, &message, 0), header.size_bytes);
}

/* The error of the answer; its data are in reply. */
static uint32_t receive(void)
{
	struct header header;

	assert_int_equal(recv(client, &header, sizeof(header), MSG_WAITALL), sizeof(header));
	assert_int_equal(header.id, 7);
	if (header.size_bytes > sizeof(header))
		assert_int_equal(
			recv(client, reply, header.size_bytes - sizeof(header), MSG_WAITALL),
			header.size_bytes - sizeof(header));
	return header.flags & ERROR ? header.error : 0;
}

static uint32_t request(uint16_t command, const void *data, size_t size_bytes, int fd)
{
	send_message(command, 0, data, size_bytes, fd);
	assert_int_equal(vfio_user_serve(server), 0);
	return receive();
}

static uint32_t read_region(uint32_t region, uint64_t offset, uint32_t *ret_value)
{
	struct region_access access = { offset, region, sizeof(*ret_value) };
	uint32_t error = request(READ, &access, sizeof(access), -1);

	memcpy(ret_value, reply + sizeof(access), sizeof(*ret_value));
	return error;
}

static void write_region(uint32_t region, uint64_t offset, uint64_t value, uint32_t size_bytes,
			 uint32_t flags)
{
	struct {
		struct region_access access;
		uint64_t value;
	} data = { { offset, region, size_bytes }, value };

	send_message(WRITE, flags, &data, sizeof(data.access) + size_bytes, -1);
	assert_int_equal(vfio_user_serve(server), 0);
	if (!(flags & NO_REPLY))
		assert_int_equal(receive(), 0);
}

#define SERVER_TEST(name) TEST_WITH(name, setup, teardown)

SERVER_TEST(the_function_is_an_mi210)
{
	uint32_t value;

	assert_int_equal(read_region(VFIO_USER_CONFIG, PCI_VENDOR_ID, &value), 0);
	assert_int_equal(value, 0x740f1002);
	assert_int_equal(read_region(VFIO_USER_ROM, 0, &value), 0);
	assert_int_equal(value & 0xffff, 0xaa55);
}

SERVER_TEST(a_bar_tells_its_size)
{
	uint32_t low, high;

	write_region(VFIO_USER_CONFIG, PCI_BASE_ADDRESS_0, ~0ull, 8, 0);
	assert_int_equal(read_region(VFIO_USER_CONFIG, PCI_BASE_ADDRESS_0, &low), 0);
	assert_int_equal(read_region(VFIO_USER_CONFIG, PCI_BASE_ADDRESS_1, &high), 0);
	assert_int_equal(low & ~15u, (uint32_t)-MACHINE_VRAM);
	assert_int_equal(high, ~0u);
	write_region(VFIO_USER_CONFIG, PCI_VENDOR_ID, 0, 4, 0);
	assert_int_equal(read_region(VFIO_USER_CONFIG, PCI_VENDOR_ID, &low), 0);
	assert_int_equal(low, 0x740f1002);
}

SERVER_TEST(posted_writes_reach_registers_in_order)
{
	uint64_t at = 4ull * REG(NBIO, mmBIOS_SCRATCH_0);
	uint32_t value;

	write_region(PCI_BAR_REGISTERS, at, 1, 4, NO_REPLY);
	write_region(PCI_BAR_REGISTERS, at, 2, 4, NO_REPLY);
	assert_int_equal(read_region(PCI_BAR_REGISTERS, at, &value), 0);
	assert_int_equal(value, 2);
}

SERVER_TEST(accesses_outside_of_a_region_are_refused)
{
	uint32_t value;

	assert_int_equal(read_region(PCI_BAR_REGISTERS, asic_mi210.register_bytes - 2, &value),
			 EINVAL);
	assert_int_equal(read_region(PCI_BAR_VRAM, ~0ull - 1, &value), EINVAL);
	assert_int_equal(read_region(8, 0, &value), EINVAL);
	assert_int_equal(read_region(77, 0, &value), EINVAL);
}

SERVER_TEST(video_memory_can_be_mapped_and_registers_cannot)
{
	struct vfio_region_info info = { .argsz = sizeof(info), .index = PCI_BAR_VRAM };

	assert_int_equal(request(REGION_INFO, &info, sizeof(info), -1), 0);
	memcpy(&info, reply, sizeof(info));
	assert_true(info.size == MACHINE_VRAM);
	assert_true(info.flags & VFIO_REGION_INFO_FLAG_MMAP);
	info.index = PCI_BAR_REGISTERS;
	assert_int_equal(request(REGION_INFO, &info, sizeof(info), -1), 0);
	memcpy(&info, reply, sizeof(info));
	assert_false(info.flags & VFIO_REGION_INFO_FLAG_MMAP);
}

SERVER_TEST(memory_is_there_until_it_is_unmapped)
{
	struct {
		uint32_t argsz, flags;
		uint64_t offset, address, size_bytes;
	} map = { sizeof(map), 3, 4096, 0x200000000ull, 8192 };
	struct {
		uint32_t argsz, flags;
		uint64_t address, size_bytes;
	} unmap = { sizeof(unmap), 0, 0x200000000ull, 8192 };
	int fd = memfd_create("guest", 0);

	assert_int_equal(ftruncate(fd, 16384), 0);
	assert_int_equal(pwrite(fd, "guest", 6, 4096), 6);
	assert_int_equal(request(DMA_MAP, &map, sizeof(map), fd), 0);
	assert_string_equal(guest_at(&machine.gpu->guest, 0x200000000ull, 6), "guest");
	assert_null(guest_at(&machine.gpu->guest, 0x200001fffull, 2));
	assert_int_equal(request(DMA_UNMAP, &unmap, sizeof(unmap), -1), 0);
	assert_null(guest_at(&machine.gpu->guest, 0x200000000ull, 6));
	assert_non_null(guest_at(&machine.gpu->guest, MACHINE_GUEST, 6));
	(void)close(fd);
}

SERVER_TEST(msi_is_an_event_until_it_is_taken_away)
{
	struct vfio_irq_set set = { .argsz = sizeof(set) + 4,
				    .flags =
					    VFIO_IRQ_SET_ACTION_TRIGGER | VFIO_IRQ_SET_DATA_EVENTFD,
				    .index = VFIO_PCI_MSI_IRQ_INDEX,
				    .count = 1 };
	int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t count = 0;

	assert_int_equal(vfio_user_interrupt(server), -ENOTCONN);
	assert_int_equal(request(SET_IRQS, &set, sizeof(set), fd), 0);
	assert_int_equal(vfio_user_interrupt(server), 0);
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	set.flags = VFIO_IRQ_SET_ACTION_TRIGGER | VFIO_IRQ_SET_DATA_NONE;
	set.count = 0;
	assert_int_equal(request(SET_IRQS, &set, sizeof(set), -1), 0);
	assert_int_equal(vfio_user_interrupt(server), -ENOTCONN);
	(void)close(fd);
}

SERVER_TEST(a_reset_forgets_registers_and_bars)
{
	uint32_t value;

	write_region(PCI_BAR_REGISTERS, 4ull * REG(NBIO, mmBIOS_SCRATCH_0), 1, 4, 0);
	write_region(VFIO_USER_CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2, 0);
	assert_int_equal(request(RESET, NULL, 0, -1), 0);
	assert_int_equal(read_region(PCI_BAR_REGISTERS, 4ull * REG(NBIO, mmBIOS_SCRATCH_0), &value),
			 0);
	assert_int_equal(value, 0);
	assert_int_equal(read_region(VFIO_USER_CONFIG, PCI_COMMAND, &value), 0);
	assert_int_equal(value & PCI_COMMAND_MASTER, 0);
}

SERVER_TEST(unknown_and_short_messages_are_violations)
{
	uint32_t half = 0;

	assert_int_equal(request(99, NULL, 0, -1), EOPNOTSUPP);
	assert_int_equal(request(READ, &half, sizeof(half), -1), EINVAL);
	assert_violations(2);
}

SERVER_TEST(the_end_of_qemu_is_noticed)
{
	(void)shutdown(client, SHUT_RDWR);
	assert_int_equal(vfio_user_serve(server), -EPIPE);
	assert_violations(0);
}
