// The server's API. docs/serve.md describes it.

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: method === 'POST' ? {'Content-Type': 'application/json'} : {},
      body: method === 'POST' ? JSON.stringify(body ?? {}) : undefined,
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
  if (!response.ok) throw new Refused(answer.error ?? `the server answers ${response.status}`, response.status);
  return answer;
}

export const choices = () => ask('GET', '/api/choices');
export const jobs = () => ask('GET', '/api/jobs');
export const job = (id) => ask('GET', `/api/jobs/${id}`);
export const submit = (form) => ask('POST', '/api/jobs', form);
export const cancel = (id) => ask('POST', `/api/jobs/${id}/cancel`);
export const again = (id) => ask('POST', `/api/jobs/${id}/again`);
export const fileOf = (id, name) => `/jobs/${id}/${name}`;
export async function textOf(id, name) {
  const response = await fetch(fileOf(id, name));
  return response.ok ? response.text() : '';
}
