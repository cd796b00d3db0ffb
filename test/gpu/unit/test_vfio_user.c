// SPDX-License-Identifier: GPL-2.0-only
/* The test program is QEMU, at the other end of a socket pair. */
#include "machine.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "vfio_user.h"

enum { READ = 9, WRITE, RESET = 13 };
#define ERROR 0x20u

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

static void send_message(uint16_t command, const void *data, size_t size_bytes)
{
	struct header header = { 7, command, sizeof(header) + size_bytes, 0, 0 };
	struct iovec parts[] = { { &header, sizeof(header) }, { (void *)data, size_bytes } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = size_bytes ? 2 : 1 };

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

static uint32_t request(uint16_t command, const void *data, size_t size_bytes)
{
	send_message(command, data, size_bytes);
	assert_int_equal(vfio_user_serve(server), 0);
	return receive();
}

static uint32_t read_region(uint32_t region, uint64_t offset, uint32_t *ret_value)
{
	struct region_access access = { offset, region, sizeof(*ret_value) };
	uint32_t error = request(READ, &access, sizeof(access));

	memcpy(ret_value, reply + sizeof(access), sizeof(*ret_value));
	return error;
}

static void write_region(uint32_t region, uint64_t offset, uint64_t value, uint32_t size_bytes)
{
	struct {
		struct region_access access;
		uint64_t value;
	} data = { { offset, region, size_bytes }, value };

	assert_int_equal(request(WRITE, &data, sizeof(data.access) + size_bytes), 0);
}

#define SERVER_TEST(name) TEST_WITH(name, setup, teardown)

SERVER_TEST(accesses_outside_of_a_region_are_refused)
{
	uint32_t value;

	assert_int_equal(read_region(PCI_BAR_REGISTERS, asic_mi210.register_bytes - 2, &value),
			 EINVAL);
	assert_int_equal(read_region(PCI_BAR_VRAM, ~0ull - 1, &value), EINVAL);
	assert_int_equal(read_region(8, 0, &value), EINVAL);
	assert_int_equal(read_region(77, 0, &value), EINVAL);
}

SERVER_TEST(a_reset_forgets_registers_and_bars)
{
	uint32_t value;

	write_region(PCI_BAR_REGISTERS, 4ull * REG(NBIO, mmBIOS_SCRATCH_0), 1, 4);
	write_region(VFIO_USER_CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	assert_int_equal(request(RESET, NULL, 0), 0);
	assert_int_equal(read_region(PCI_BAR_REGISTERS, 4ull * REG(NBIO, mmBIOS_SCRATCH_0), &value),
			 0);
	assert_int_equal(value, 0);
	assert_int_equal(read_region(VFIO_USER_CONFIG, PCI_COMMAND, &value), 0);
	assert_int_equal(value & PCI_COMMAND_MASTER, 0);
}

SERVER_TEST(unknown_and_short_messages_are_violations)
{
	uint32_t half = 0;

	assert_int_equal(request(99, NULL, 0), EOPNOTSUPP);
	assert_int_equal(request(READ, &half, sizeof(half)), EINVAL);
	assert_violations(2);
}

SERVER_TEST(the_end_of_qemu_is_noticed)
{
	(void)shutdown(client, SHUT_RDWR);
	assert_int_equal(vfio_user_serve(server), -EPIPE);
	assert_violations(0);
}
