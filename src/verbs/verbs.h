/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_VERBS_H
#define STET_VERBS_VERBS_H

#include "session/verb.h"

extern const struct verb verb_run, verb_exec, verb_status, verb_diff, verb_commit,
	verb_rollback, verb_undo, verb_redo, verb_log, verb_audit, verb_list,
	verb_explore, verb_forget, verb_prune, verb_check, verb_recover, verb_doctor,
	verb_version, verb_help, verb_completion, verb_checkpoint, verb_show,
	verb_restore, verb_fork, verb_policy_check, verb_policy_show, verb_policy_test,
	verb_policy_explain, verb_allow, verb_consent;

#endif
