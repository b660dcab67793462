// The server's API. docs/serve.md describes it.

/** `at`: the JSON pointer of the wrong member of a form, if it is one; `problem`: what is wrong with it. */
export class Refused extends Error {
  constructor(message, status, at, problem) {
    super(message);
    Object.assign(this, {status, at, problem});
  }
}

// The address has the token when the page is opened; it is kept for this tab and this port, and goes into a header. A cookie
// would go to every port of the machine.
function tokenOf() {
  const given = new URLSearchParams(location.search).get('token');
  try {
    if (given) sessionStorage.setItem('token', given);
    return given ?? sessionStorage.getItem('token') ?? '';
  } catch {  // a browser that keeps nothing
    return given ?? '';
  }
}
const authorization = {Authorization: `Bearer ${tokenOf()}`};

async function ask(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: method === 'POST' ? {...authorization, 'Content-Type': 'application/json'} : authorization,
      body: method === 'POST' ? (typeof body === 'string' ? body : JSON.stringify(body ?? {})) : undefined,
    });
  } catch {
    throw new Refused('The server does not answer: has it ended?', 0);
  }
  let answer = {};
  try {
    answer = await response.json();
  } catch {
    // An answer without a body says enough by its status.
  }
  if (!response.ok)
    throw new Refused(answer.error ?? `the server answers ${response.status}`, response.status, answer.at, answer.problem);
  return answer;
}

export const choices = () => ask('GET', '/api/choices');
export const jobs = () => ask('GET', '/api/jobs');
export const job = (id) => ask('GET', `/api/jobs/${id}`);
/** Checks a form without making a job of it. */
export const check = (form) => ask('POST', '/api/check', form);
export const submit = (form) => ask('POST', '/api/jobs', form);
export const cancel = (id) => ask('POST', `/api/jobs/${id}/cancel`);
export const again = (id) => ask('POST', `/api/jobs/${id}/again`);
export const name = (id, name) => ask('POST', `/api/jobs/${id}/name`, {name});
export const forget = (id) => ask('POST', `/api/jobs/${id}/forget`);
/** What differs between the results of two jobs, as text. */
export const differences = async (before, after) => (await ask('GET', `/api/jobs/${before}/differences/${after}`)).text;
/** `kind`: "trace" or "platform". The file's name is only shown. */
export const upload = (kind, name, text) => ask('POST', `/api/uploads?${new URLSearchParams({kind, name})}`, text);
export const forgetUpload = (id) => ask('POST', `/api/uploads/${id}/forget`);
/** The address of a job's file, with a key that is good for it alone: a frame, a picture or a link sends no header. */
export const fileOf = (job, name) => job.links[name];
export async function textOf(job, name) {
  const response = await fetch(fileOf(job, name));
  return response.ok ? response.text() : '';
}
