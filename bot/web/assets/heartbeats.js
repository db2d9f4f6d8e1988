'use strict';
// The heartbeats: what wakes for the person, in a dialog of its own. It uses the small tools of app.js.

// showBeats lists what wakes for the person. Only the newest answer counts.
let beatsAsked = 0;

async function showBeats() {
  const mine = ++beatsAsked;
  const fault = $('beats-fault');
  try {
    const { heartbeats } = await readJSON('/api/heartbeats');
    if (mine !== beatsAsked) return;
    fault.textContent = '';
    $('beats-list').replaceChildren(...(heartbeats.length ? heartbeats.map(beatItem) : [make('li', { text: 'Nothing does. Try: remind me tomorrow at 8 to call Bob.' })]));
  } catch (err) {
    fault.textContent = err.message;
  }
}

function beatItem(beat) {
  const why = make('pre', { hidden: true, tabindex: '0', 'aria-label': 'Why ' + beat.name + ' did or did not wake me' });
  const fault = make('div', { class: 'fault', role: 'alert' });
  const attempt = async act => {
    fault.textContent = '';
    try { await act(); } catch (err) { fault.textContent = err.message; }
  };
  // What is done is a command, whose answer stands in the conversation.
  const command = verb => attempt(async () => {
    await post('/api/say', { id: newID(), text: '/heartbeats ' + verb + ' ' + beat.name, quiet: true });
    await showBeats();
    const again = [...$('beats-list').children].find(li => li.dataset.name === beat.name);
    (again ? again.querySelector('button') : $('beats-close')).focus();
  });
  const tellWhy = e => attempt(async () => {
    if (why.hidden) why.textContent = (await readJSON('/api/heartbeats?' + new URLSearchParams({ why: beat.name }))).why;
    why.hidden = !why.hidden;
    e.target.setAttribute('aria-expanded', String(!why.hidden));
  });
  const remove = e => {
    if (e.target.textContent === 'Delete') e.target.textContent = 'Delete it?';
    else command('delete');
  };
  const whyButton = button('Why', '', tellWhy);
  whyButton.setAttribute('aria-expanded', 'false');
  const item = make('li', { class: beat.paused ? 'paused' : null },
    make('h3', { text: beat.name }),
    make('p', { class: 'about', dir: 'auto', text: beat.about }),
    make('p', { class: 'until', text: beat.schedule + (beat.next ? '; next ' + dayText(beat.next) : '') }),
    beat.paused ? make('p', { class: 'until', text: beat.state }) : null,
    beat.said ? make('p', { class: 'until', text: beat.said.join('; ') }) : null,
    make('div', { class: 'buttons' }, whyButton,
      beat.paused ? null : button('Run now', '', () => command('run')),
      beat.governed ? button(beat.paused ? 'Resume' : 'Pause', '', () => command(beat.paused ? 'resume' : 'pause')) : null,
      beat.governed && beat.made ? button('Delete', 'danger', remove) : null),
    fault, why);
  item.dataset.name = beat.name;
  return item;
}

$('beats-open').addEventListener('click', () => { side(false); $('beats').showModal(); showBeats(); });
$('beats-close').addEventListener('click', () => $('beats').close());
$('beats').addEventListener('click', e => { if (e.target === $('beats')) $('beats').close(); }); // beside it
