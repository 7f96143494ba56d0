/* Judging what was observed while the command runs, by a Python process that has the rules. */
#ifndef JUDGE_H
#define JUDGE_H

/* Start the process, whose input are the observer's lines in the trial's folder. */
void start_judge(char **words, int trial);

int is_judged(void);

/* Say whether something is wrong by the lines so far. */
int finds_fault(void);

#endif
