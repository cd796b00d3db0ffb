// SPDX-License-Identifier: GPL-2.0-only
/* Makes the command line of a dump or restore. test/faults/run has removed variables from the
 * environment. */
#include "host.h"

#include <stdlib.h>

#include "amdgpu_plugin_util.h"

void build_init(struct build *build, const char *directory)
{
	*build = (struct build){ 0 };
	text_add(&build->plugin, "%s/faults/amdgpu_plugin.so", directory);
	text_add(&build->host, "%s/native/host", directory);
	text_add(&build->simulator, "%s/sim/libamdgpu_sim.so", directory);
	text_add(&build->injector, "%s/faults/inject.so", directory);
	text_add(&build->work, "%s/faults/work", directory);
	text_add(&build->coverage, "%s/faults/coverage.txt", directory);
}

void build_done(struct build *build)
{
	text_done(&build->plugin);
	text_done(&build->host);
	text_done(&build->simulator);
	text_done(&build->injector);
	text_done(&build->work);
	text_done(&build->coverage);
}

/* If a shell is between, the shell preloads. */
static void add_environment(const struct build *build, const struct host_call *call,
			    struct command *command)
{
	const struct scenario *scenario = call->scenario;
	const char *machine = scenario->machine[call->phase];

	command_add(command, "env");
	command_add(command, "AMDGPU_SIM_MACHINE=%s", machine ? machine : "one");
	if (scenario->on_base && call->phase == DUMP)
		command_add(command, "AMDGPU_BASE=%s/base", build->work.bytes);
	if (scenario->environment[call->phase])
		command_add(command, "%s", scenario->environment[call->phase]);
	if (call->table)
		command_add(command, "FAULTS_TABLE=%s", call->table);
	if (call->inject)
		command_add(command, "FAULTS_INJECT=%s", call->inject);
	command_add(command, "%s=%s%s%s", scenario->private ? "INTERPOSED" : "LD_PRELOAD",
		    call->table ? build->injector.bytes : "", call->table ? ":" : "",
		    build->simulator.bytes);
	if (!scenario->private)
		return;
	command_add(command, "unshare");
	command_add(command, "-m");
	command_add(command, "test/faults/private");
	command_add(command, "%s", phase_names[call->phase]);
}

static void add_host(const struct build *build, const struct host_call *call,
		     struct command *command)
{
	const struct scenario *scenario = call->scenario;

	command_add(command, "%s", build->host.bytes);
	command_add(command, "-p");
	command_add(command, "%s", build->plugin.bytes);
	command_add(command, "-c");
	command_add(command, "%s", scenario->criu ? scenario->criu : "4.3");
	if (scenario->streams)
		command_add(command, "-s");
	if (call->phase == DUMP && scenario->ends_tasks)
		command_add(command, "-x");
	if (call->phase == DUMP && call->again)
		command_add(command, "-a");
	command_add(command, "%s", phase_names[call->phase]);
	command_add(command, "%s", call->directory);
	command_add(command, "%s", scenario->workload);
}

void host_run(const struct build *build, const struct host_call *call, struct outcome *ret_outcome)
{
	_cleanup_(command_done) struct command command = { 0 };

	add_environment(build, call, &command);
	add_host(build, call, &command);
	process_run(&command, ret_outcome);
}
